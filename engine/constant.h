// engine/constant.h: reading a constant of any float type as the engine stores it, fp16.
#ifndef ANEMONE_ENGINE_CONSTANT_H_
#define ANEMONE_ENGINE_CONSTANT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "math/core/half.h"
#include "math/gemm/coded_weights.h"
#include "math/move/convert.h"

namespace anemone {

// The type as math names it. `type` is one that IsEngineConstant() takes, uint16, or int64
// or int32, as which indices leave the engine.
math::Element ElementOf(DataType type);

// Zeros that take no memory, where values do not matter. kInvalidArgument: dims that cannot be
// counted.
absl::StatusOr<Tensor> ZeroFill(DataType type, std::vector<int64_t> dims);

// float32, float16, bfloat16, double, and bool as 0 and 1.
bool IsEngineConstant(DataType type);

// Elements [first, first + to.size()), each rounded once; a fill is repeated, a NaN becomes
// +infinity as at a port.
void ReadHalves(const Tensor& tensor, int64_t first, absl::Span<math::Half> to);

// How the tensor is compressed (anemone/compressed.h), for kernels that keep it so; kDense: it is
// not. Borrows the tensor.
math::CodedWeights CodedFormOf(const Tensor& tensor);

// All elements, rounded to fp16 and widened again: what the engine computes with.
std::vector<float> RoundedFloats(const Tensor& tensor);

// A constant of rank 5 with its axes 1 and 2 swapped, as fp16: MIL and ONNX have C before D, the
// engine D before C.
Tensor WithDepthMoved(const Tensor& tensor);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_CONSTANT_H_
