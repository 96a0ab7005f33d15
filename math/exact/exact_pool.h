// math/exact/exact_pool.h: average and L2 pooling in `exact` mode (numerics.json pool-avg,
// pool-l2). Shapes are those of pool.h. MaxPool() of pool.h is exact already (pool-max).
#ifndef ANEMONE_MATH_EXACT_EXACT_POOL_H_
#define ANEMONE_MATH_EXACT_EXACT_POOL_H_

#include "absl/types/span.h"
#include "math/conv/pool.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

void ExactAveragePool(const Numerics& n, const PoolShape& shape, AverageDivisor divisor,
                      absl::Span<const Half> x, absl::Span<Half> y);
// The square root of a window's sum of squares, or of their mean, as pool-l2 says.
void ExactL2Pool(const Numerics& n, const PoolShape& shape, absl::Span<const Half> x,
                 absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_POOL_H_
