// engine/math/exact_reduce.h: what sums many elements besides the array's contractions, in `exact`
// mode: reductions, average pools, softmax, normalizations. Shapes are those of reduce.h, pool.h,
// softmax.h and normalize.h. Rules: numerics.json red-*, pool-*, sm-order, sm-nan, nrm-*.
#ifndef ENGINE_MATH_EXACT_REDUCE_H_
#define ENGINE_MATH_EXACT_REDUCE_H_

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/math/exact_mac.h"
#include "engine/math/extents.h"
#include "engine/math/normalize.h"
#include "engine/math/pool.h"
#include "engine/math/reduce.h"

namespace anemone::math {

// kSum and kMean; a maximum or minimum is exact in reduce.h already.
void ExactReduce(const Numerics& n, ReduceOp op, const Extents& extents, AxisSet axes,
                 absl::Span<const Half> x, absl::Span<Half> y);

void ExactAveragePool(const Numerics& n, const PoolShape& shape, AverageDivisor divisor,
                      absl::Span<const Half> x, absl::Span<Half> y);
// The root of a window's sum of squares, or of their mean (pool-l2).
void ExactL2Pool(const Numerics& n, const PoolShape& shape, absl::Span<const Half> x,
                 absl::Span<Half> y);

void ExactSoftmax(const Numerics& n, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
                  absl::Span<Half> y);

// Layer and instance normalization. A root is taken as the table does (exact_table.h).
void ExactNormalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                    const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                    absl::Span<Half> y);
void ExactL2Normalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                      absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ENGINE_MATH_EXACT_REDUCE_H_
