// anemone/scale_grid.h: maps each element of a quantized tensor to its scale.
//
//   using anemone::ScaleGrid;
//   ScaleGrid grid = *ScaleGrid::Of({64, 32, 3, 3}, {64}, /*axis=*/0, /*block_size=*/0);
//   grid.IndexOf(9 * 32 * 5);                    // 5: the scale of output channel 5
//   grid.SharedRun(/*step=*/1, /*count=*/288);   // 288: each output channel has one scale
#ifndef ANEMONE_SCALE_GRID_H_
#define ANEMONE_SCALE_GRID_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace anemone {

// The tensor is seen as (outer, axis, inner), last fastest. `block` consecutive indices of the axis
// share a scale. The strides say how the index of the scale changes with each of the three indices;
// a stride of 0 means that the scale does not depend on it.
struct ScaleGrid {
  int64_t axis = 1, inner = 1, block = 1;
  int64_t outer_stride = 0, axis_stride = 0, inner_stride = 0;

  // One scale for all elements.
  static ScaleGrid OfTensor(int64_t elements) { return {1, elements, 1, 0, 0, 0}; }

  // The scales of ONNX's DequantizeLinear for a tensor of shape `dims`: `scales` is the shape of
  // the scales, which are one scalar, one per index of `axis` (negative counts from the end), or,
  // if block_size is above 0, one per block of `axis`, where the last block may be partial.
  // Errors: kInvalidArgument (the axis does not exist, or the shape of the scales does not fit).
  static absl::StatusOr<ScaleGrid> Of(absl::Span<const int64_t> dims,
                                      absl::Span<const int64_t> scales, int64_t axis,
                                      int64_t block_size);

  // Whether all of `elements` elements map to an index below `scales`. Safe for any field values,
  // so that it can check a grid read from a file.
  bool Fits(int64_t elements, int64_t scales) const;

  // The index of the scale of an element, which is counted in row-major order.
  int64_t IndexOf(int64_t element) const {
    const int64_t row = element / inner;
    return row / axis * outer_stride + row % axis / block * axis_stride +
           element % inner * inner_stride;
  }

  // For a line of `count` elements that are `step` apart: the length of the equal runs into which
  // it can be divided so that each run has one scale; 1 if neighbors have different scales. The
  // line must start at a multiple of `count` (step 1) or at an element below `step`.
  int64_t SharedRun(int64_t step, int64_t count) const;
};

}  // namespace anemone

#endif  // ANEMONE_SCALE_GRID_H_
