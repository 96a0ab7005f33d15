// tools/compare/weights_file.h: reads tensors by name from a file of weights.
#ifndef ANEMONE_TOOLS_COMPARE_WEIGHTS_FILE_H_
#define ANEMONE_TOOLS_COMPARE_WEIGHTS_FILE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"

namespace anemone {

// By the suffix: .safetensors, NumPy's .npz, or the initializers of an .onnx. The file is
// untrusted. Errors: those of ReadSafetensors(), ReadNpz() and ImportFile(); kInvalidArgument
// (another suffix, or there is no tensor).
absl::StatusOr<std::map<std::string, Tensor>> ReadWeights(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_WEIGHTS_FILE_H_
