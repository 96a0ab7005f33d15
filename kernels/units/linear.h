// kernels/units/linear.h: for lowerings: a fully connected layer, y = x * B + bias with constant B.
#ifndef ANEMONE_KERNELS_UNITS_LINEAR_H_
#define ANEMONE_KERNELS_UNITS_LINEAR_H_

#include <optional>

#include "kernels/lowering.h"
#include "kernels/units/matrix_multiplication.h"

namespace anemone {

// Multiplies the rows of an ONNX value by B and adds the bias. The value has shape `x_shape`, whose
// last axis has b.k elements. `x` holds its elements in ONNX's order (see ToOnnxOrder()) under any
// dims, so a wide row need not be along W. `bias` has b.n elements, or is null. The result is a
// value of `y_shape` under PlaceShape(y_shape).
Operand FullyConnected(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> x_shape,
                       const ConstantMatrix& b, const Tensor* bias,
                       absl::Span<const int64_t> y_shape);

// The weight of a Linear unit; nullopt if it is of another kind. Its bias is its second weight.
std::optional<ConstantMatrix> FactorOfLinear(const Unit& unit);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_LINEAR_H_
