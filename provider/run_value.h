// provider/run_value.h: a value passed between segments and bodies.
#ifndef ANEMONE_PROVIDER_RUN_VALUE_H_
#define ANEMONE_PROVIDER_RUN_VALUE_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "anemone/onnx_value.h"
#include "anemone/tensor.h"
#include "fallback/cpu_value.h"

namespace anemone {

// Either a tensor, from the caller or the engine, or a result of a CPU segment. Neither for an
// omitted input and for an optional without a value. Copies share the bytes.
struct RunValue {
  Tensor tensor;
  CpuValue cpu;

  bool is_empty() const { return !has_tensor() && cpu.get() == nullptr; }
  bool has_tensor() const { return tensor.type() != DataType::kUndefined; }
  absl::StatusOr<Tensor> ToTensor() const {
    if (has_tensor()) return tensor;
    return cpu.ToTensor();
  }
  absl::StatusOr<OnnxValue> ToOnnxValue() && {
    if (has_tensor()) return OnnxValue(std::move(tensor));
    return cpu.ToValue();
  }
  absl::StatusOr<CpuValue> ToCpuValue(const std::shared_ptr<const OrtRuntime>& runtime) const {
    if (has_tensor()) return CpuValue::FromTensor(runtime, tensor);
    return cpu;
  }
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_RUN_VALUE_H_
