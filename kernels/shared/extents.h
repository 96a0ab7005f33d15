// kernels/shared/extents.h: products of extents of a value that is there, so that they do not
// overflow; others are counted by ElementCount().
#ifndef ANEMONE_KERNELS_SHARED_EXTENTS_H_
#define ANEMONE_KERNELS_SHARED_EXTENTS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace anemone {

// 1 for none.
inline int64_t Product(absl::Span<const int64_t> extents) {
  int64_t product = 1;
  for (int64_t extent : extents) product *= extent;
  return product;
}

// Of the axes in front of one, and of those behind it.
struct Around {
  int64_t before = 1, after = 1;
};
inline Around ProductsAround(absl::Span<const int64_t> extents, int axis) {
  return {Product(extents.first(axis)), Product(extents.subspan(axis + 1))};
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_EXTENTS_H_
