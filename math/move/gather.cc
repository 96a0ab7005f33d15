#include "math/move/gather.h"

#include <cassert>
#include <cstring>

#include "math/core/parallel.h"

namespace anemone::math {

void Gather(const Extents& extents, int axis, absl::Span<const int64_t> indices,
            absl::Span<const Half> x, absl::Span<Half> y) {
  const int64_t count = indices.size();
  const int64_t size = extents[axis];
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < kRank; ++i) {
    if (i < axis) outer *= extents[i];
    if (i > axis) inner *= extents[i];
  }
  assert(static_cast<int64_t>(y.size()) == outer * count * inner);
  if (inner == 1) {
    return ParallelForItems(outer, count, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t j = 0; j < count; ++j) y[o * count + j] = x[o * size + indices[j]];
      }
    });
  }
  ParallelForItems(outer * count, inner, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t index = indices[item % count];
      assert(index >= 0 && index < size);
      std::memcpy(&y[item * inner], &x[(item / count * size + index) * inner],
                  inner * sizeof(Half));
    }
  });
}

}  // namespace anemone::math
