// kernels/units/input_view.h: for lowerings: slices an operand along one axis.
#ifndef ANEMONE_KERNELS_UNITS_INPUT_VIEW_H_
#define ANEMONE_KERNELS_UNITS_INPUT_VIEW_H_

#include "kernels/lowering.h"

namespace anemone {

// The `size` elements offset, offset + step, ... of `x` along `axis`. All of them must be inside x.
// A negative step runs backwards from `offset`. No unit is added if the result is all of x.
Operand Sliced(NetworkBuilder& c, const Operand& x, Axis axis, int64_t offset, int64_t size,
               int64_t step = 1);

// The elements that a slice takes along one axis. Start and end are clamped as in ONNX and MIL, and
// negative ones count from the end. kInvalidArgument if the step is 0.
struct Range {
  int64_t offset = 0, size = 0, step = 1;
};
absl::StatusOr<Range> RangeOf(int64_t start, int64_t end, int64_t step, int64_t extent);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_INPUT_VIEW_H_
