// kernels/units/linear.h: a fully connected layer, y = x * B + bias with constant B, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_LINEAR_H_
#define ANEMONE_KERNELS_UNITS_LINEAR_H_

#include "kernels/lowering.h"
#include "kernels/units/matrix_multiplication.h"

namespace anemone {

// The rows of ONNX value x, whose last axis has b.k elements, times B: a value of `y_shape`, laid
// out as that is. `x` has x's elements in ONNX's order under any dims (see ToOnnxOrder()); so a
// wide row need not lie along W. `bias`: null, or b.n elements.
Operand FullyConnected(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> x_shape,
                       const ConstantMatrix& b, const Tensor* bias,
                       absl::Span<const int64_t> y_shape);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_LINEAR_H_
