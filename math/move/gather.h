// math/move/gather.h: picking along one axis by a list of indices.
//
//   Gather({1, 1, 1, 30522, 768}, kAxisH, ids, table, y);   // y: 1x1x1x(ids)x768
#ifndef ANEMONE_MATH_MOVE_GATHER_H_
#define ANEMONE_MATH_MOVE_GATHER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// y has the extents of x with indices.size() at `axis`; y[.., j, ..] = x[.., indices[j], ..]. Every
// index is inside x's extent (not negative): the caller has checked. `x` and `y` do not overlap.
void Gather(const Extents& extents, int axis, absl::Span<const int64_t> indices,
            absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_GATHER_H_
