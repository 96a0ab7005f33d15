// tests/on_onnx_runtime.h: what ONNX Runtime makes of a whole model.
#ifndef ANEMONE_TESTS_ON_ONNX_RUNTIME_H_
#define ANEMONE_TESTS_ON_ONNX_RUNTIME_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"

namespace anemone {

using Tensors = std::map<std::string, Tensor>;

// `model`: the bytes of a file, read by ONNX Runtime itself.
absl::StatusOr<Tensors> RunOnOnnxRuntime(const std::string& model, const Tensors& inputs);

}  // namespace anemone

#endif  // ANEMONE_TESTS_ON_ONNX_RUNTIME_H_
