// math/move/resize.h: 2-D resampling with precomputed source indices and weights, which are
// separate for rows and columns.
//
//   // Nearest, factor 2: the source index of every output row and column.
//   ResizeNearest({.planes = 3, .in_h = 2, .in_w = 2}, {0, 0, 1, 1}, {0, 0, 1, 1}, x, y);
//   // Linear has two taps per output, cubic has four.
//   ResizeLinear(shape, rows, columns, x, y);
//
// ONNX's coordinate transformation modes determine the indices and weights; the caller computes
// them.
#ifndef ANEMONE_MATH_MOVE_RESIZE_H_
#define ANEMONE_MATH_MOVE_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"

namespace anemone::math {

// x is (planes, in_h, in_w), where planes is N * D * C.
struct ResizeShape {
  int64_t planes = 1;
  int64_t in_h = 1, in_w = 1;
};

// y is (planes, rows.size(), columns.size()). Bits are copied unchanged. Every index must be inside
// x.
void ResizeNearest(const ResizeShape& shape, absl::Span<const int32_t> rows,
                   absl::Span<const int32_t> columns, absl::Span<const Half> x, absl::Span<Half> y,
                   const Epilogue& epilogue = {});

// Output i is the sum over t < taps of weights[i * taps + t] * in[indices[i * taps + t]].
struct AxisTaps {
  int64_t taps = 2;
  std::vector<int32_t> indices;
  std::vector<float> weights;

  int64_t size() const { return static_cast<int64_t>(indices.size()) / taps; }
};

// y is (planes, rows.size(), columns.size()). Interpolates columns, then rows, both in fp32 and in
// the order of taps, with one rounding at the end.
void ResizeLinear(const ResizeShape& shape, const AxisTaps& rows, const AxisTaps& columns,
                  absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_RESIZE_H_
