// math/reduce/sort.h: the order of one axis, by the elements of chosen lanes of another.
//
//   // Of 8 channels of 100 columns: the columns with the 5 largest elements of channel 0, largest
//   // first; all channels of them, or (indices) their numbers.
//   SortSpec spec{.sort_axis = kAxisW, .vector_axis = kAxisC, .lanes = {0}, .descending = true,
//                 .count = 5};
//   Sort(spec, {1, 1, 8, 1, 100}, x, y);   // y: 1x1x8x1x5; with indices 1x1x1x1x5
//
// A later lane decides where all before it are equal; where all are, the lower index comes first,
// whatever the direction. -0 equals 0. Indices are fp16 numbers, rounded above 2048.
#ifndef ANEMONE_MATH_REDUCE_SORT_H_
#define ANEMONE_MATH_REDUCE_SORT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

struct SortSpec {
  int sort_axis = kAxisW, vector_axis = kAxisC;  // two axes
  absl::Span<const int64_t> lanes;               // of the vector axis; none: nothing is moved
  bool descending = false;
  int64_t count = 1;  // how many of the order's first places: 1 to the axis's extent
  bool indices = false;
  bool last_first = false;  // of equal elements the higher index comes first
};

// For each index of the three other axes alone. y has the extents of x, but `count` along the sort
// axis, and for indices 1 along the vector axis. It does not overlap x.
void Sort(const SortSpec& spec, const Extents& extents, absl::Span<const Half> x,
          absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_SORT_H_
