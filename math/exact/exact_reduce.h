// math/exact/exact_reduce.h: reductions, softmax and normalizations in `exact` mode. Shapes are
// those of reduce.h, softmax.h and normalize.h. Rules: numerics.json red-sum, red-mean, red-l2,
// sm-order, sm-nan, nrm-layer, nrm-instance, nrm-rms, nrm-l2, nrm-eps, st-nan-lnvar.
#ifndef ANEMONE_MATH_EXACT_EXACT_REDUCE_H_
#define ANEMONE_MATH_EXACT_EXACT_REDUCE_H_

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_mac.h"
#include "math/reduce/normalize.h"
#include "math/reduce/reduce.h"

namespace anemone::math {

// For kSum and kMean; Reduce() of reduce.h is exact for a maximum or minimum. With `squares`, sums
// the squares of the elements, which are not rounded (red-l2).
void ExactReduce(const Numerics& n, ReduceOp op, bool squares, const Extents& extents, AxisSet axes,
                 absl::Span<const Half> x, absl::Span<Half> y);

// f16(sum * (1 / count)), or with `rounds_twice` f16(f16(sum) * f16(1 / count)).
Half ExactMean(const Numerics& n, float sum, int64_t count, bool rounds_twice);

// f16(function(f16(x))), where `function` is kSqrt or kRsqrt.
Half ExactRoot(const Numerics& n, Unary function, double x);

void ExactSoftmax(const Numerics& n, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
                  absl::Span<Half> y);

// Layer and instance normalization. `port` has the values of x before they entered at a port, or is
// empty. A NaN there, which is infinite in x, counts as a large number in the variance
// (st-nan-lnvar).
void ExactNormalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                    const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                    absl::Span<const Half> port, absl::Span<Half> y);
void ExactL2Normalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                      absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_REDUCE_H_
