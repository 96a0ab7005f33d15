// importer/infer/places.h: where the elements of one array are in another: broadcast, transposed or
// cut.
//
//   Places places;                       // of the columns 2 and 0 of a matrix of 5 rows
//   places.AddAxis(5, 3);
//   places.AddAxis({2, 0});
//   places.all();                        // 2, 0, 5, 3, 8, 6, ...
#ifndef ANEMONE_IMPORTER_INFER_PLACES_H_
#define ANEMONE_IMPORTER_INFER_PLACES_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace anemone {

class Places {
 public:
  // Adds a last axis: each place is replaced by the places that are so many elements after it.
  void AddAxis(absl::Span<const int64_t> offsets);
  void AddAxis(std::initializer_list<int64_t> offsets) {
    AddAxis(absl::Span<const int64_t>(offsets.begin(), offsets.size()));
  }
  void AddAxis(int64_t size, int64_t step);

  // In the order of the new array.
  const std::vector<int64_t>& all() const { return places_; }

 private:
  std::vector<int64_t> places_ = {0};
};

// The elements from one index of an axis to the next, by axis, in row-major order.
std::vector<int64_t> StepsOf(absl::Span<const int64_t> dims);

// The places of an array of `dims` that is broadcast to `out`, as ONNX does.
Places BroadcastPlaces(absl::Span<const int64_t> dims, absl::Span<const int64_t> out);

// nullopt if the arrays do not fit each other.
std::optional<std::vector<int64_t>> BroadcastDims(absl::Span<const int64_t> a,
                                                  absl::Span<const int64_t> b);

// At most kMostComputed elements, where an axis without elements counts as one of one element: its
// size does not bound the others.
bool IsSmall(absl::Span<const int64_t> dims);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_PLACES_H_
