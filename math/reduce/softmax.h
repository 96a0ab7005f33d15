// math/reduce/softmax.h: softmax with the engine's rounding points.
//
//   Softmax({1, 1, 1, 1, 1000}, AxisSet({kAxisW}), x, y);
//
// m = max; d = Half(x - m), NaN to +0; e = Half(exp d); s = fp32 sum of e; y = Half(e / s)
// (numerics_notes.md section 4). So an infinite element takes all of the weight, and a row of -inf
// only becomes uniform. exp is our own polynomial (relative error below 1e-6 before rounding): no
// result depends on a C library.
#ifndef ANEMONE_MATH_REDUCE_SOFTMAX_H_
#define ANEMONE_MATH_REDUCE_SOFTMAX_H_

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// Over all elements of `axes` together, for each index of the others. `x` and `y` may be the same.
void Softmax(const Extents& extents, AxisSet axes, absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_SOFTMAX_H_
