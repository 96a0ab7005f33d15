// math/reduce/reduce.h: sums, means, products, extremes and norms over any set of axes.
//
//   Reduce(ReduceOp::kMean, {1, 1, 64, 7, 7}, AxisSet({kAxisH, kAxisW}), x, y);  // y: 1x1x64x1x1
//
// Accumulates in fp32 and rounds once at the end. The order of additions depends on the extents
// alone, not on the number of threads or the vector length. With an empty set of axes, the
// operation applies to each element alone.
#ifndef ANEMONE_MATH_REDUCE_REDUCE_H_
#define ANEMONE_MATH_REDUCE_REDUCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

enum class ReduceOp : uint8_t {
  kSum,
  kMean,
  kMax,  // kMax and kMin give a NaN if an element is a NaN
  kMin,
  kSumSquares,  // squares and sum in fp32
  kL1,          // sum of absolute values
  kL2,          // square root of the sum of squares
  kProduct,
};

// y has Count(Reduced(extents, axes)) elements. `x` and `y` must not overlap.
void Reduce(ReduceOp op, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
            absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_REDUCE_H_
