// math/move/gather.h: selects elements along one axis by a list of indices (ONNX Gather).
//
//   Gather({1, 1, 1, 30522, 768}, kAxisH, ids, table, y);   // y: 1x1x1x(ids)x768
#ifndef ANEMONE_MATH_MOVE_GATHER_H_
#define ANEMONE_MATH_MOVE_GATHER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

// y[.., j, ..] = x[.., indices[j], ..]. y has the extents of x, with indices.size() at `axis`. The
// caller must check that every index is from 0 to below the extent of x. `x` and `y` must not
// overlap.
void Gather(const Extents& extents, int axis, absl::Span<const int64_t> indices,
            absl::Span<const Half> x, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_GATHER_H_
