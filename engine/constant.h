// engine/constant.h: reads constants of any float type as fp16, the type in which the engine stores
// them.
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

// The element type in math's enumeration. `type` is a type that IsEngineConstant() accepts, uint16,
// or int64 or int32 (the types in which indices leave the engine).
math::Element ElementOf(DataType type);

// A tensor of zeros that takes no memory, for uses where the values do not matter. kInvalidArgument
// if the number of elements is not valid.
absl::StatusOr<Tensor> ZeroFill(DataType type, std::vector<int64_t> dims);

// True for float32, float16, bfloat16, double, and bool (which becomes 0 and 1).
bool IsEngineConstant(DataType type);

// Writes elements [first, first + to.size()) as fp16. Each is rounded once; by default a NaN
// becomes +infinity, as at a port. A tensor that is a fill repeats its value.
void ReadHalves(const Tensor& tensor, int64_t first, absl::Span<math::Half> to,
                math::NanRule nan = math::NanRule::kToInfinity);

// How the tensor is compressed (anemone/compressed.h), for kernels that compute on the compressed
// form; kDense if it is not compressed. The result points into the tensor.
math::CodedWeights CodedFormOf(const Tensor& tensor);

// All elements, rounded to fp16 and converted back to float: the values that the engine computes
// with.
std::vector<float> RoundedFloats(const Tensor& tensor);

// A constant of rank 5 with its axes 1 and 2 swapped, as fp16. MIL and ONNX have C before D, the
// engine has D before C.
Tensor WithDepthMoved(const Tensor& tensor);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_CONSTANT_H_
