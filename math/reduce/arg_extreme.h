// math/reduce/arg_extreme.h: the index of the largest or smallest element (ArgMax, ArgMin), as an
// fp16 number.
//
//   ArgExtreme(Extreme::kMax, {1, 1, 21, 64, 64}, kAxisC, x, y);   // y: 1x1x1x64x64, of 0 to 20
//   WindowArgExtreme(Extreme::kMin, shape, x, y);                  // one index per window
//
// Of equal elements the first is taken (numerics.json st-index; as in ONNX), or the last with
// `takes_last`. -0 equals 0. Indices are rounded to fp16, ties to even, so those above 2048 may not
// be exact.
#ifndef ANEMONE_MATH_REDUCE_ARG_EXTREME_H_
#define ANEMONE_MATH_REDUCE_ARG_EXTREME_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/conv/pool.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

enum class Extreme : uint8_t { kMax, kMin };

// Along one axis. y has Count(Reduced(extents, {axis})) elements and must not overlap x.
void ArgExtreme(Extreme extreme, const Extents& extents, int axis, absl::Span<const Half> x,
                absl::Span<Half> y, bool takes_last = false);

// For each window of each plane. Indices count the elements of the window row by row, including
// padding; padding is never the extreme. Every window must contain an element of the input.
// Dilations must be 1.
void WindowArgExtreme(Extreme extreme, const PoolShape& shape, absl::Span<const Half> x,
                      absl::Span<Half> y, bool takes_last = false);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_ARG_EXTREME_H_
