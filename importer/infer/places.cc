#include "importer/infer/places.h"

#include <algorithm>

#include "importer/infer/compute.h"

namespace anemone {

void Places::AddAxis(absl::Span<const int64_t> offsets) {
  std::vector<int64_t> next;
  next.reserve(places_.size() * offsets.size());
  for (int64_t place : places_) {
    for (int64_t offset : offsets) next.push_back(place + offset);
  }
  places_ = std::move(next);
}

void Places::AddAxis(int64_t size, int64_t step) {
  std::vector<int64_t> offsets(size);
  for (int64_t i = 0; i < size; ++i) offsets[i] = i * step;
  AddAxis(offsets);
}

std::vector<int64_t> StepsOf(absl::Span<const int64_t> dims) {
  std::vector<int64_t> steps(dims.size());
  int64_t step = 1;
  for (size_t i = dims.size(); i-- > 0; step *= dims[i]) steps[i] = step;
  return steps;
}

Places BroadcastPlaces(absl::Span<const int64_t> dims, absl::Span<const int64_t> out) {
  const std::vector<int64_t> steps = StepsOf(dims);
  const size_t added = out.size() - dims.size();
  Places places;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool repeats = i < added || dims[i - added] == 1;
    places.AddAxis(out[i], repeats ? 0 : steps[i - added]);
  }
  return places;
}

std::optional<std::vector<int64_t>> BroadcastDims(absl::Span<const int64_t> a,
                                                  absl::Span<const int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::vector<int64_t> out(a.begin(), a.end());
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& size = out[a.size() - b.size() + i];
    if (size != b[i] && size != 1 && b[i] != 1) return std::nullopt;
    if (size == 1) size = b[i];
  }
  return out;
}

bool IsSmall(absl::Span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > kMostComputed) return false;
    count *= std::max<int64_t>(dim, 1);
    if (count > kMostComputed) return false;
  }
  return true;
}

}  // namespace anemone
