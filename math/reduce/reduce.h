// math/reduce/reduce.h: sums, means and extremes over any set of axes.
//
//   Reduce(ReduceOp::kMean, {1, 1, 64, 7, 7}, AxisSet({kAxisH, kAxisW}), x, y);  // y: 1x1x64x1x1
//
// fp32 accumulation, one rounding at the end. The order of additions depends on the extents alone,
// never on the threads or the machine's vector length. An empty set of axes applies the operation
// to each element alone.
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
  kMax,  // max and min give a NaN if there is one
  kMin,
  kSumSquares,  // squares and sum in fp32
  kL1,          // sum of absolute values
  kL2,          // square root of the sum of squares
  kProduct,
};

// y has Count(Reduced(extents, axes)) elements. `x` and `y` do not overlap.
void Reduce(ReduceOp op, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
            absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_REDUCE_H_
