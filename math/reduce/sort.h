// math/reduce/sort.h: sorts vectors along one axis, by chosen elements (lanes) of the vectors; also
// top-k.
//
//   // Columns are vectors of 8 channels. Takes the 5 columns (of 100) with the largest elements in
//   // channel 0, largest first. With .indices = true, gives the numbers of these columns instead.
//   const int64_t lanes[] = {0};
//   SortSpec spec{.sort_axis = kAxisW, .vector_axis = kAxisC, .lanes = lanes, .descending = true,
//                 .count = 5};
//   Sort(spec, {1, 1, 8, 1, 100}, x, y);   // y: 1x1x8x1x5; with indices 1x1x1x1x5
//
// Vectors are compared by the first lane; if equal, by the next lane, and so on. If all lanes are
// equal, the lower index comes first, in both directions. -0 equals 0. Indices are fp16 numbers,
// rounded above 2048.
#ifndef ANEMONE_MATH_REDUCE_SORT_H_
#define ANEMONE_MATH_REDUCE_SORT_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

struct SortSpec {
  int sort_axis = kAxisW, vector_axis = kAxisC;  // must differ
  absl::Span<const int64_t> lanes;  // indices along the vector axis; if empty, the order is kept
  bool descending = false;
  int64_t count = 1;        // of vectors to output, from the first: 1 to the extent of sort_axis
  bool indices = false;     // output the indices of the vectors instead
  bool last_first = false;  // if equal, the higher index comes first
};

// Sorts separately for each index of the three other axes. y has the extents of x, except `count`
// along the sort axis and, with `indices`, 1 along the vector axis. It must not overlap x.
void Sort(const SortSpec& spec, const Extents& extents, absl::Span<const Half> x,
          absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_SORT_H_
