// math/exact/exact_lanes.h: computes many sums without weights at once (reductions, pooling,
// softmax, normalization) in `exact` mode. Internal.
//
//   Groups groups(extents, axes);               // one group for each index of the other axes
//   ForBlocks(groups.count(), cost, [&](int64_t first, int64_t count) {
//     const Block block = {groups, first, count};
//     LaneSums sums(numerics);
//     sums.Of(groups.size(), [&](int64_t k, int64_t lanes, float* to) {
//       block.Load(x, k, lanes, to);            // kMacColumns columns per lane
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

// The offsets of the elements to be summed. A group has the elements along `axes`, in row-major
// order; there is one group for each index of the other axes.
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

// Groups [first, first + count), at most kMacColumns, as a matrix with one column per group and one
// row per element.
struct Block {
  const Groups& groups;
  int64_t first, count;

  // Writes rows [from, from + rows) to `to`, with zeros in the columns from `count` on.
  void Load(absl::Span<const Half> x, int64_t from, int64_t rows, float* to) const;
  // The reverse. The values must be representable as Half.
  void Store(const float* values, int64_t from, int64_t rows, absl::Span<Half> y) const;
};

// Divides [0, groups) into blocks of at most kMacColumns and calls body(first, count) for each, in
// parallel. `cost` is that of one group, in elements.
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

// Lanes processed at a time, so that their values stay in the first- and second-level caches.
inline constexpr int64_t kLaneChunk = 512;

// Calls body(from, rows, values) for chunks of up to kLaneChunk rows; `values` is a buffer for rows
// of kMacColumns numbers.
template <class Body>
void ForChunks(int64_t depth, std::vector<float>& values, const Body& body) {
  values.resize(std::min(depth, kLaneChunk) * kMacColumns);
  for (int64_t from = 0; from < depth; from += kLaneChunk) {
    body(from, std::min(depth - from, kLaneChunk), values.data());
  }
}

// Sums by the rules of the engine's dedicated reductions (red-sum).
class LaneSums {
 public:
  explicit LaneSums(const Numerics& n) : n_(n), ones_(kLaneChunk, 1.0f), sums_(kMacColumns) {}

  // Sums `depth` rows, which fill(from, rows, to) writes. The result has one sum per column and is
  // valid until the next call.
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

// Applies an operation to rows of kMacColumns numbers and rounds each result (Stored() of
// exact_half.h). `operands` has one row for all rows, or, if `is_row_each`, one for each row.
enum class LaneStep : uint8_t { kAdd, kSubtract, kMultiply, kDivide };
void StepLanes(const Numerics& n, LaneStep step, const float* operands, bool is_row_each,
               int64_t rows, float* values);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_LANES_H_
