// provider/coreml/package.h: writes a model as a Core ML package (docs/coreml.md): a folder with
// the program, its weights, and a manifest.
//
//   ANEMONE_ASSIGN_OR_RETURN(Json report, ConvertToPackage("net.onnx", "net.mlpackage",
//                                                          {{.target = "m1"}, "mlpackage"}));
#ifndef ANEMONE_PROVIDER_COREML_PACKAGE_H_
#define ANEMONE_PROVIDER_COREML_PACKAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "provider/convert/convert.h"

namespace anemone {

inline constexpr char kPackageFormat[] = "mlpackage";

// Writes the whole model to the folder `package`, which must not exist or must be empty; on error,
// writes nothing. The bytes depend only on the model and the options. Returns the report
// (docs/schemas/convert.json). Errors: those of Convert(), and kUnimplemented: Core ML cannot have
// a node or port (the message names it), or not on the minimum OS.
absl::StatusOr<Json> ConvertToPackage(const std::string& path, const std::string& package,
                                      const ConvertOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_PACKAGE_H_
