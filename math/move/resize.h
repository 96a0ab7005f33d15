// math/move/resize.h: 2-D sampling by precomputed taps, rows and columns apart.
//
//   // nearest, factor 2: every output row and column names its source
//   ResizeNearest({.planes = 3, .in_h = 2, .in_w = 2}, {{0, 0, 1, 1}}, {{0, 0, 1, 1}}, x, y);
//   // linear: two taps per output; cubic has four; the caller's coordinate rule is in the numbers
//   ResizeLinear(shape, rows, columns, x, y);
//
// Every coordinate mode of ONNX is a way to fill these vectors, so none is known here.
#ifndef ANEMONE_MATH_MOVE_RESIZE_H_
#define ANEMONE_MATH_MOVE_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"

namespace anemone::math {

// x is (planes, in_h, in_w): N, D and C together are the planes.
struct ResizeShape {
  int64_t planes = 1;
  int64_t in_h = 1, in_w = 1;
};

// y is (planes, rows.size(), columns.size()); bits are moved, never changed. Every index is inside.
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

// Columns first, then rows, both in fp32 and in tap order; one rounding at the end.
void ResizeLinear(const ResizeShape& shape, const AxisTaps& rows, const AxisTaps& columns,
                  absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_RESIZE_H_
