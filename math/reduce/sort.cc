#include "math/reduce/sort.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <utility>

#include "math/core/order_key.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"

namespace anemone::math {
namespace {

// A sort key: the index of a vector in the low 40 bits, and the key of its first lane above. So
// numeric order is sort order, with the lower index first among equals.
using Place = uint64_t;
constexpr int kPlaceBits = 40;

constexpr Place kPlaces = (Place{1} << kPlaceBits) - 1;

// The low bits for index `i`, reversed if the last of equal elements comes first. Its own inverse.
Place PlaceOf(Place i, bool last_first) { return last_first ? kPlaces - i : i; }

// A key, at least 0, that is larger the later the element comes.
int KeyOf(Half x, bool descending) { return 0x8000 + (descending ? -OrderKey(x) : OrderKey(x)); }

template <class Before>
void TakeFirst(absl::Span<Place> places, int64_t count, const Before& before) {
  const auto end = places.begin() + count;
  if (end != places.end()) std::nth_element(places.begin(), end, places.end(), before);
  std::sort(places.begin(), end, before);
}

// Sorts by the keys alone, a byte at a time. Equal keys keep their order. `other` has the size of
// `places`.
void SortByKeys(absl::Span<Place> places, absl::Span<Place> other) {
  constexpr int kByte = 8;
  for (int shift : {kPlaceBits, kPlaceBits + kByte}) {
    const auto byte = [shift](Place place) { return place >> shift & 0xff; };
    std::array<int64_t, 256> next{};
    for (Place place : places) ++next[byte(place)];
    int64_t first = 0;
    for (int64_t& at : next) first += std::exchange(at, first);
    for (Place place : places) other[next[byte(place)]++] = place;
    std::swap(places, other);
  }
}

// Sorts one line of vectors, whose first element is x[0], and leaves the first spec.count of them
// at the front of `places`.
void Order(const SortSpec& spec, const Half* x, int64_t step, int64_t lane_step,
           absl::Span<Place> places, absl::Span<Place> other) {
  const auto index_of = [&](Place place) {
    return static_cast<int64_t>(PlaceOf(place & kPlaces, spec.last_first));
  };
  auto key = [&](int64_t lane, int64_t i) {
    return KeyOf(x[lane * lane_step + i * step], spec.descending);
  };
  for (int64_t i = 0; i < static_cast<int64_t>(places.size()); ++i) {
    const Place first = spec.lanes.empty() ? 0 : key(spec.lanes[0], i);
    places[i] = first << kPlaceBits | PlaceOf(static_cast<Place>(i), spec.last_first);
  }
  if (spec.lanes.size() <= 1) {
    constexpr int64_t kManyPlaces = 128;  // fewer than a counter for each byte takes
    const auto size = static_cast<int64_t>(places.size());
    if (size < kManyPlaces || spec.count < size / 2) {
      return TakeFirst(places, spec.count, std::less<Place>());
    }
    if (spec.last_first) std::reverse(places.begin(), places.end());
    return SortByKeys(places, other);
  }
  TakeFirst(places, spec.count, [&](Place a, Place b) {
    if ((a ^ b) >> kPlaceBits != 0) return a < b;
    for (int64_t lane : spec.lanes.subspan(1)) {
      const int key_a = key(lane, index_of(a)), key_b = key(lane, index_of(b));
      if (key_a != key_b) return key_a < key_b;
    }
    return a < b;
  });
}

}  // namespace

void Sort(const SortSpec& spec, const Extents& extents, absl::Span<const Half> x,
          absl::Span<Half> y) {
  const int sort = spec.sort_axis, vector = spec.vector_axis;
  Extents made = extents;
  made[sort] = spec.count;
  if (spec.indices) made[vector] = 1;
  assert(sort != vector && static_cast<int64_t>(x.size()) == Count(extents) &&
         static_cast<int64_t>(y.size()) == Count(made));
  const Strides from = DenseStrides(extents), to = DenseStrides(made);
  Extents lines = extents;
  lines[sort] = lines[vector] = 1;
  const int64_t work = extents[sort] * (16 + extents[vector]);  // about 16 comparisons per element
  ParallelForItems(Count(lines), work, [&](int64_t begin, int64_t end) {
    const CallScratch<Place> places(extents[sort]), other(extents[sort]);
    for (int64_t line = begin; line < end; ++line) {
      const Half* source = x.data();
      Half* target = y.data();
      int64_t rest = line;
      for (int i = kRank - 1; i >= 0; rest /= lines[i], --i) {
        source += rest % lines[i] * from[i];
        target += rest % lines[i] * to[i];
      }
      Order(spec, source, from[sort], from[vector], places.span(), other.span());
      for (int64_t k = 0; k < spec.count; ++k) {
        const auto at = static_cast<int64_t>(PlaceOf(places[k] & kPlaces, spec.last_first));
        if (spec.indices) target[k * to[sort]] = ToHalf(static_cast<float>(at));
        for (int64_t lane = 0; !spec.indices && lane < extents[vector]; ++lane) {
          target[k * to[sort] + lane * to[vector]] = source[at * from[sort] + lane * from[vector]];
        }
      }
    }
  });
}

}  // namespace anemone::math
