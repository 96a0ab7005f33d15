#include "kernels/shared/borders.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/broadcast.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"

namespace anemone {
namespace {

// The `size` elements of padding on one side of x along an axis.
Operand Side(NetworkBuilder& c, const Operand& x, Axis axis, const Border& border, int64_t size,
             bool after) {
  Dims dims = c.DimsOf(x);
  int64_t extent = dims[axis];
  dims[axis] = size;
  switch (border.sides) {
    case Sides::kConstant:
      return Filled(c, border.value, dims);
    case Sides::kEdge: {
      Operand edge = Sliced(c, x, axis, after ? extent - 1 : 0, 1);
      return Broadcasted(c, edge, dims);
    }
    case Sides::kReflect:
      return Sliced(c, x, axis, after ? extent - 2 : size, size, -1);
    case Sides::kSymmetric:
      return Sliced(c, x, axis, after ? extent - 1 : size - 1, size, -1);
    case Sides::kWrap:
      break;
  }
  return Sliced(c, x, axis, after ? 0 : extent - size, size);
}

}  // namespace

Operand Between(NetworkBuilder& c, const Operand& x, Axis axis, int64_t before, int64_t after,
                const Border& border) {
  std::vector<Operand> parts = {x};
  if (before > 0) {
    Operand side = Side(c, x, axis, border, before, /*after=*/false);
    parts.insert(parts.begin(), side);
  }
  if (after > 0) {
    Operand side = Side(c, x, axis, border, after, /*after=*/true);
    parts.push_back(side);
  }
  return Concatenated(c, std::move(parts), axis);
}

}  // namespace anemone
