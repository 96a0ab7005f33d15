// provider/compiled/compile_steps.h: what compiling and patching a model have in common.
#ifndef ANEMONE_PROVIDER_COMPILED_COMPILE_STEPS_H_
#define ANEMONE_PROVIDER_COMPILED_COMPILE_STEPS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "anemone/tensor.h"
#include "provider/load_setup.h"
#include "provider/loaded_model.h"

namespace anemone {

// To plan the model at `path`.
absl::StatusOr<LoadSetup> SetupToCompile(const std::string& path, Settings settings);

// Plans the model of `setup` and saves its program in `folder`; `sources` and `version` as in
// ReadProgram(), `before` as in LoadSetup. Returns the line of the plan. UsageError: a dimension is
// free. kFailedPrecondition: nothing runs on the engine.
absl::StatusOr<std::string> PlanIntoFolder(const std::string& folder, std::vector<Tensor> sources,
                                           const std::string& version, LoadSetup setup,
                                           std::shared_ptr<const LoadedModel> before = nullptr);

// Copies a file with some ranges replaced, by their offsets.
absl::Status CopyWith(const Tensor& source, const std::map<uint64_t, Tensor>& replaced,
                      const std::string& to);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_COMPILE_STEPS_H_
