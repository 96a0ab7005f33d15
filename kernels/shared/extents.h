// kernels/shared/extents.h: products of the extents of a value. They are not checked for overflow;
// use ElementCount() unless the value is known to exist in memory.
#ifndef ANEMONE_KERNELS_SHARED_EXTENTS_H_
#define ANEMONE_KERNELS_SHARED_EXTENTS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace anemone {

// 1 if there are no extents.
inline int64_t Product(absl::Span<const int64_t> extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

// Products of the extents before an axis and after it.
struct Around {
  int64_t before = 1, after = 1;
};
inline Around ProductsAround(absl::Span<const int64_t> extents, int axis) {
  return {Product(extents.first(axis)), Product(extents.subspan(axis + 1))};
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_EXTENTS_H_
