// math/exact/exact_lanes.h: many sums side by side, for what sums in `exact` mode without weights.
// Internal.
//
//   Groups groups(extents, axes);               // the elements over `axes`, by the other axes
//   ForBlocks(groups.count(), cost, [&](int64_t first, int64_t count) {
//     const Block block = {groups, first, count};
//     LaneSums sums(numerics);
//     sums.Of(groups.size(), [&](int64_t k, int64_t lanes, float* to) {
//       block.Load(x, k, lanes, to);            // kMacColumns columns to a lane
//     });
//   });
#ifndef ANEMONE_MATH_EXACT_EXACT_LANES_H_
#define ANEMONE_MATH_EXACT_EXACT_LANES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/parallel.h"
#include "math/exact/exact_mac.h"
#include "math/gemm/panels.h"

namespace anemone::math {

// Where the elements over `axes` stand, in their order, for each index of the other axes.
class Groups {
 public:
  Groups(const Extents& extents, AxisSet axes) : Groups(extents, axes, DenseStrides(extents)) {}
  Groups(const Extents& extents, AxisSet axes, const Strides& strides);

  int64_t count() const { return static_cast<int64_t>(bases_.size()); }
  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  int64_t At(int64_t group, int64_t element) const { return bases_[group] + elements_[element]; }

 private:
  std::vector<int64_t> elements_, bases_;
};

// Groups [first, first + count), at most kMacColumns: a column each, a row for each element.
struct Block {
  const Groups& groups;
  int64_t first, count;

  // Rows [from, from + rows) to `to`, zeros in the columns beyond `count`.
  void Load(absl::Span<const Half> x, int64_t from, int64_t rows, float* to) const;
  // The reverse, of numbers that Halfs hold.
  void Store(const float* values, int64_t from, int64_t rows, absl::Span<Half> y) const;
};

// body(first, count) for blocks of at most kMacColumns that together make [0, groups).
template <class Body>
void ForBlocks(int64_t groups, int64_t cost, const Body& body) {
  const int64_t blocks = CeilDiv(groups, kMacColumns);
  ParallelForItems(blocks, cost * kMacColumns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kMacColumns;
      body(first, std::min(groups - first, kMacColumns));
    }
  });
}

// Lanes are made so many at a time: what they need stays in the first caches.
inline constexpr int64_t kLaneChunk = 512;

// body(from, rows, values): rows of kMacColumns numbers, a chunk at a time.
template <class Body>
void ForChunks(int64_t depth, std::vector<float>& values, const Body& body) {
  values.resize(std::min(depth, kLaneChunk) * kMacColumns);
  for (int64_t from = 0; from < depth; from += kLaneChunk) {
    body(from, std::min(depth - from, kLaneChunk), values.data());
  }
}

// Sums by the dedicated reduction's rules (red-sum).
class LaneSums {
 public:
  explicit LaneSums(const Numerics& n) : n_(n), ones_(kLaneChunk, 1.0f), sums_(kMacColumns) {}

  // fill(from, rows, to) writes the rows. The result holds until the next call.
  template <class Fill>
  absl::Span<const float> Of(int64_t depth, const Fill& fill) {
    ForChunks(depth, lanes_, [&](int64_t from, int64_t rows, float* lanes) {
      fill(from, rows, lanes);
      MacSums(n_, {.depth = rows, .is_reduction = true, .continues = from > 0},
              absl::MakeConstSpan(ones_).first(rows), lanes_, absl::MakeSpan(sums_));
    });
    return sums_;
  }

 private:
  const Numerics& n_;
  std::vector<float> ones_, lanes_, sums_;
};

// Steps on rows of kMacColumns numbers, each stored and read again (Stored() of exact_half.h): with
// one row of operands for all, or with a row for each.
enum class LaneStep : uint8_t { kAdd, kSubtract, kMultiply, kDivide };
void StepLanes(const Numerics& n, LaneStep step, const float* operands, bool is_row_each,
               int64_t rows, float* values);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_LANES_H_
