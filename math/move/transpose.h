// math/move/transpose.h: permutes the five axes.
//
//   Transpose({1, 1, 64, 28, 28}, {0, 1, 3, 4, 2}, x, y);   // N D C H W -> N D H W C
#ifndef ANEMONE_MATH_MOVE_TRANSPOSE_H_
#define ANEMONE_MATH_MOVE_TRANSPOSE_H_

#include <array>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// Axis i of `out` is axis permutation[i] of `in`. Runs that stay contiguous are copied at once. If
// the innermost axis moves, square blocks are transposed in registers. `in` and `out` must not
// overlap.
void Transpose(const Extents& in_extents, const std::array<int, kRank>& permutation,
               absl::Span<const Half> in, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_TRANSPOSE_H_
