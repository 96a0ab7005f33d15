// math/exact/exact_reduce.h: what sums many elements besides the array's contractions, in `exact`
// mode: reductions, softmax, normalizations. Shapes are those of reduce.h, softmax.h and
// normalize.h. Rules: numerics.json red-sum, red-mean, red-l2, sm-order, sm-nan,
// nrm-layer, nrm-instance, nrm-rms, nrm-l2, nrm-eps, st-nan-lnvar.
#ifndef ANEMONE_MATH_EXACT_EXACT_REDUCE_H_
#define ANEMONE_MATH_EXACT_EXACT_REDUCE_H_

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_mac.h"
#include "math/reduce/normalize.h"
#include "math/reduce/reduce.h"

namespace anemone::math {

// kSum and kMean; a maximum or minimum is exact in reduce.h already. `squares`: of the elements'
// squares, which are not rounded (red-l2).
void ExactReduce(const Numerics& n, ReduceOp op, bool squares, const Extents& extents, AxisSet axes,
                 absl::Span<const Half> x, absl::Span<Half> y);

// f16(sum / count), as a mean is rounded.
Half ExactMean(const Numerics& n, float sum, int64_t count, bool rounds_twice);

// f16(sqrt(f16(x))), or of rsqrt.
Half ExactRoot(const Numerics& n, Unary function, double x);

void ExactSoftmax(const Numerics& n, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
                  absl::Span<Half> y);

// Layer and instance normalization. `port` is x as it came to its port, or empty: a NaN, infinite
// in x, is a large number to the variance (st-nan-lnvar).
void ExactNormalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                    const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                    absl::Span<const Half> port, absl::Span<Half> y);
void ExactL2Normalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                      absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_REDUCE_H_
