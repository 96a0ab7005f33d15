// importer/infer/indexed_places.h: the elements that indices of Gather, GatherElements, ScatterND
// and their like name.
#ifndef ANEMONE_IMPORTER_INFER_INDEXED_PLACES_H_
#define ANEMONE_IMPORTER_INFER_INDEXED_PLACES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace anemone {

struct IndexedPlaces {
  std::vector<int64_t> places;
  std::optional<int64_t> outside;  // an index that its axis does not have; `places` are no places
};

// Lists of `depth` indices, one for each of the first axes, which is what ScatterND takes. The
// places count the parts that have one index of each of these axes. Gather has lists of one index
// for an array of one axis.
IndexedPlaces PlacesOfLists(absl::Span<const int64_t> array, int64_t depth,
                            std::vector<int64_t> indices);

// Indices along `axis`, an array of `dims`: each is of the element that has its own index along the
// other axes, as in GatherElements. The places count elements.
IndexedPlaces PlacesAlong(absl::Span<const int64_t> array, int64_t axis,
                          absl::Span<const int64_t> dims, std::vector<int64_t> indices);

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
