// kernels/shared/axis_matrix.h: one axis times a constant matrix, for lowerings: resampling, sums
// of windows, Fourier transforms.
#ifndef ANEMONE_KERNELS_SHARED_AXIS_MATRIX_H_
#define ANEMONE_KERNELS_SHARED_AXIS_MATRIX_H_

#include <cstdint>

#include "anemone/tensor.h"
#include "kernels/lowering.h"

namespace anemone {

// A matrix of more elements is not made.
inline constexpr int64_t kMostMatrixElements = int64_t{1} << 24;

// `x` with element o along `axis` = sum over i of matrix(o, i) * x(i): the axis is brought to C,
// where a 1x1 convolution contracts it. One rounding; but 0 times infinity is no number, so an
// infinite element reaches them all. `matrix` is float, (out, in).
Operand TimesMatrix(NetworkBuilder& c, Operand x, Axis axis, const Tensor& matrix);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_AXIS_MATRIX_H_
