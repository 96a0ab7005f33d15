// kernels/shared/axis_matrix.h: multiplies one axis of an operand by a constant matrix. Lowerings
// use it for resampling, sums of windows and Fourier transforms.
#ifndef ANEMONE_KERNELS_SHARED_AXIS_MATRIX_H_
#define ANEMONE_KERNELS_SHARED_AXIS_MATRIX_H_

#include "anemone/tensor.h"
#include "kernels/lowering.h"

namespace anemone {

// Computes y(o) = sum over i of matrix(o, i) * x(i) along `axis`. The axis is moved to C, where a
// 1x1 convolution contracts it. There is one rounding. An infinite element of x turns every result
// into NaN or infinity, because 0 times infinity is NaN. `matrix` is float, (out, in).
Operand TimesMatrix(NetworkBuilder& c, Operand x, Axis axis, const Tensor& matrix);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_AXIS_MATRIX_H_
