// kernels/units/dynamic_slice.h: for lowerings: slices whose starts are computed at run time.
#ifndef ANEMONE_KERNELS_UNITS_DYNAMIC_SLICE_H_
#define ANEMONE_KERNELS_UNITS_DYNAMIC_SLICE_H_

#include "absl/status/status.h"
#include "kernels/lowering.h"

namespace anemone {

// ONNX's Slice with starts that are not constant and steps of 1: a DynamicSlice unit for each axis
// that is cut. The sizes are those of the output's shape. Not lowered unless every start is known
// not to be negative, and not so large that its end would be clamped.
absl::Status LowerDynamicSlice(const Node& node, LowerContext& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_DYNAMIC_SLICE_H_
