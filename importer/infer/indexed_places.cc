#include "importer/infer/indexed_places.h"

namespace anemone {
namespace {

using Dims = std::vector<int64_t>;

void Append(Dims& to, absl::Span<const int64_t> dims) {
  to.insert(to.end(), dims.begin(), dims.end());
}

}  // namespace

IndexedPlaces PlacesOfLists(absl::Span<const int64_t> array, int64_t depth,
                            absl::Span<const int64_t> indices) {
  IndexedPlaces made;
  made.places.reserve(indices.size() / depth);
  for (size_t list = 0; list < indices.size(); list += depth) {
    int64_t place = 0;
    for (int64_t axis = 0; axis < depth; ++axis) {
      const int64_t size = array[axis], index = indices[list + axis];
      if (index < -size || index >= size) return {.places = {}, .outside = index};
      place = place * size + (index < 0 ? index + size : index);
    }
    made.places.push_back(place);
  }
  return made;
}

bool FitAlong(absl::Span<const int64_t> array, int64_t axis, absl::Span<const int64_t> dims) {
  if (dims.size() != array.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > array[i] && static_cast<int64_t>(i) != axis) return false;
  }
  return true;
}

std::vector<int64_t> GatheredDims(absl::Span<const int64_t> array, int64_t axis,
                                  absl::Span<const int64_t> indices) {
  Dims dims(array.begin(), array.begin() + axis);
  Append(dims, indices);
  Append(dims, array.subspan(axis + 1));
  return dims;
}

std::optional<std::vector<int64_t>> UpdateDims(absl::Span<const int64_t> array,
                                               absl::Span<const int64_t> indices) {
  if (indices.empty()) return std::nullopt;
  const int64_t depth = indices.back();
  if (depth < 1 || depth > static_cast<int64_t>(array.size())) return std::nullopt;
  Dims dims(indices.begin(), indices.end() - 1);
  Append(dims, array.subspan(depth));
  return dims;
}

}  // namespace anemone
