// math/reduce/arg_extreme.h: where the largest or smallest element stands, as fp16 numbers.
//
//   ArgExtreme(Extreme::kMax, {1, 1, 21, 64, 64}, kAxisC, x, y);   // y: 1x1x1x64x64, of 0 to 20
//   WindowArgExtreme(Extreme::kMin, shape, x, y);                  // one index a plane and window
//
// Of equal elements the first counts (numerics.json st-index; ONNX says the same) unless the last
// is asked for, and -0 equals 0. An index that fp16 has not is rounded, ties to even: above 2048 it
// is no longer exact.
#ifndef ANEMONE_MATH_REDUCE_ARG_EXTREME_H_
#define ANEMONE_MATH_REDUCE_ARG_EXTREME_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/conv/pool.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

enum class Extreme : uint8_t { kMax, kMin };

// Along one axis. y has Count(Reduced(extents, {axis})) elements and does not overlap x.
void ArgExtreme(Extreme extreme, const Extents& extents, int axis, absl::Span<const Half> x,
                absl::Span<Half> y, bool takes_last = false);

// Places are counted inside the window, row by row, its padding included; padding never wins. Every
// window has an element of the input. Dilations are 1.
void WindowArgExtreme(Extreme extreme, const PoolShape& shape, absl::Span<const Half> x,
                      absl::Span<Half> y, bool takes_last = false);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_ARG_EXTREME_H_
