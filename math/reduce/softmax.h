// math/reduce/softmax.h: softmax that rounds where the engine rounds.
//
//   Softmax({1, 1, 1, 1, 1000}, AxisSet({kAxisW}), x, y);
//
// m = max(x); d = Half(x - m), where a NaN becomes +0; e = Half(exp(d)); s = fp32 sum of e;
// y = Half(e / s) (numerics_notes.md section 4). So an infinite element gets all of the weight, and
// a row of only -inf becomes uniform. exp() is a polynomial with a relative error below 1e-6 before
// rounding, so that results do not depend on the C library.
#ifndef ANEMONE_MATH_REDUCE_SOFTMAX_H_
#define ANEMONE_MATH_REDUCE_SOFTMAX_H_

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// Normalizes over all of `axes` together, for each index of the other axes. `x` and `y` may be the
// same array.
void Softmax(const Extents& extents, AxisSet axes, absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_SOFTMAX_H_
