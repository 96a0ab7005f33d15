// provider/compiled/compile.h: writes a compiled model (provider/compiled/compiled_model.h).
//
//   ANEMONE_ASSIGN_OR_RETURN(Compiled made, CompileModel("net.onnx", settings, "net.ane"));
#ifndef ANEMONE_PROVIDER_COMPILED_COMPILE_H_
#define ANEMONE_PROVIDER_COMPILED_COMPILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "anemone/settings.h"

namespace anemone {

struct Compiled {
  std::string line;             // PlanLine(); "" if the model was not planned
  std::string weights_version;  // a hash of the model's files
};

// Plans the model with the settings `given` and writes the folder `output`, which must not exist,
// or be empty. Errors: those of Session::Load() and NewFolder; UsageError: a dimension is free;
// kUnimplemented: a package cannot hold the plan.
absl::StatusOr<Compiled> CompileModel(const std::string& path, const Settings& given,
                                      const std::string& output);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_COMPILE_H_
