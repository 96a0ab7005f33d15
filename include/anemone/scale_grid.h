// anemone/scale_grid.h: which elements of a quantized tensor share a scale.
//
//   ScaleGrid grid = *ScaleGrid::Of({64, 32, 3, 3}, {64}, /*axis=*/0, /*block_size=*/0);
//   grid.IndexOf(9 * 32 * 5);            // 5: the scale of output channel 5
//   grid.SharedRun(/*step=*/1, 288);     // 288: a whole row of the kernel has one scale
#ifndef ANEMONE_SCALE_GRID_H_
#define ANEMONE_SCALE_GRID_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace anemone {

// Elements are counted as (outer, axis, inner), the last fastest; `block` neighbours of the axis
// share a scale. A stride of 0: the scale does not depend on that index, which has one
// value or no say.
struct ScaleGrid {
  int64_t axis = 1, inner = 1, block = 1;
  int64_t outer_stride = 0, axis_stride = 0, inner_stride = 0;

  // One scale for all.
  static ScaleGrid OfTensor(int64_t elements) { return {1, elements, 1, 0, 0, 0}; }

  // As ONNX's DequantizeLinear has them: a scalar, one for each element of an axis, or (block_size
  // above 0) for each block of it, of which the last may be partial. kInvalidArgument: the scales'
  // dims do not fit.
  static absl::StatusOr<ScaleGrid> Of(absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> scales, int64_t axis,
                                      int64_t block_size);

  // Whether so many elements find their scale among `scales`, whatever wrote the numbers here.
  bool Fits(int64_t elements, int64_t scales) const;

  int64_t IndexOf(int64_t element) const {
    const int64_t row = element / inner;
    return row / axis * outer_stride + row % axis / block * axis_stride +
           element % inner * inner_stride;
  }

  // A line of `count` elements, `step` apart, that starts at a multiple of `count` (for step 1) or
  // below `step`, falls into runs of this many that share a scale each; 1 if none do.
  int64_t SharedRun(int64_t step, int64_t count) const;
};

}  // namespace anemone

#endif  // ANEMONE_SCALE_GRID_H_
