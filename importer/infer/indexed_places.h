// importer/infer/indexed_places.h: the elements that indices of Gather, GatherElements, ScatterND
// and their like name.
#ifndef ANEMONE_IMPORTER_INFER_INDEXED_PLACES_H_
#define ANEMONE_IMPORTER_INFER_INDEXED_PLACES_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "importer/infer/places.h"

namespace anemone {

struct IndexedPlaces {
  std::vector<int64_t> places;
  std::optional<int64_t> outside;  // an index that its axis does not have; `places` are no places
};

// Lists of `depth` indices, one for each of the first axes, which is what ScatterND takes. The
// places count the parts that have one index of each of these axes. Gather has lists of one index
// for an array of one axis.
IndexedPlaces PlacesOfLists(absl::Span<const int64_t> array, int64_t depth,
                            absl::Span<const int64_t> indices);

// Indices along `axis`, an array of `dims`: each is of the element that has its own index along the
// other axes, as in GatherElements. Calls visit(i, place) for each in order. Ends at the first that
// is outside of its axis, and returns it.
template <class Visit>
std::optional<int64_t> ForEachAlong(absl::Span<const int64_t> array, int64_t axis,
                                    absl::Span<const int64_t> dims,
                                    absl::Span<const int64_t> indices, const Visit& visit) {
  const int64_t size = array[axis], last = static_cast<int64_t>(dims.size()) - 1;
  std::vector<int64_t> steps = StepsOf(array), at(dims.size());
  const int64_t step = std::exchange(steps[axis], 0);
  int64_t row = 0;  // the place, but for the indices and the last axis
  for (auto index = indices.begin(); index != indices.end();) {
    const auto end = index + dims[last];
    for (int64_t place = row; index != end; ++index, place += steps[last]) {
      if (*index < -size || *index >= size) return *index;
      visit(index - indices.begin(), place + (*index < 0 ? *index + size : *index) * step);
    }
    for (int64_t i = last - 1; i >= 0; --i) {
      row += steps[i];
      if (++at[i] < dims[i]) break;
      row -= std::exchange(at[i], 0) * steps[i];
    }
  }
  return std::nullopt;
}

// Whether such indices are within the array along the other axes.
bool FitAlong(absl::Span<const int64_t> array, int64_t axis, absl::Span<const int64_t> dims);

// The dims of what a Gather with indices of these dims takes of an array.
std::vector<int64_t> GatheredDims(absl::Span<const int64_t> array, int64_t axis,
                                  absl::Span<const int64_t> indices);

// The dims of ScatterND's updates. nullopt: the lists have no index, or more than the array axes.
std::optional<std::vector<int64_t>> UpdateDims(absl::Span<const int64_t> array,
                                               absl::Span<const int64_t> indices);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INDEXED_PLACES_H_
