#include "kernels/shared/axis_matrix.h"

#include "base/status_macros.h"
#include "kernels/conv/conv.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {

Operand TimesMatrix(NetworkBuilder& c, Operand x, Axis axis, const Tensor& matrix) {
  const int64_t out = matrix.dims()[0];
  if (axis != Axis::kN) {
    x = SwapAxes(c, x, Axis::kC, axis);
    x = PointwiseConv(c, x, out, matrix, /*in_major=*/false, nullptr);
    return SwapAxes(c, x, Axis::kC, axis);
  }
  // No unit moves N. A reshape makes N the channel axis and merges the axes after it into H and W.
  Dims dims = c.DimsOf(x);
  x = ReshapeToDims(c, x, MakeDims(1, dims.n(), dims.d() * dims.c() * dims.h(), dims.w()));
  x = PointwiseConv(c, x, out, matrix, /*in_major=*/false, nullptr);
  dims[Axis::kN] = out;
  return ReshapeToDims(c, x, dims);
}

}  // namespace anemone
