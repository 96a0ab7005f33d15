// kernels/units/input_view.h: a part of an operand along one axis, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_INPUT_VIEW_H_
#define ANEMONE_KERNELS_UNITS_INPUT_VIEW_H_

#include "kernels/lowering.h"

namespace anemone {

// Elements offset, offset + step, ... along `axis`: `size` of them, each inside x. A negative step
// runs backwards from `offset`. No unit where that is all of x.
Operand Sliced(NetworkBuilder& c, const Operand& x, Axis axis, int64_t offset, int64_t size,
               int64_t step = 1);

// What a slice takes of one axis, its ends clamped as ONNX and MIL do: negative ones count from the
// end. kInvalidArgument for a step of 0.
struct Range {
  int64_t offset = 0, size = 0, step = 1;
};
absl::StatusOr<Range> RangeOf(int64_t start, int64_t end, int64_t step, int64_t extent);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_INPUT_VIEW_H_
