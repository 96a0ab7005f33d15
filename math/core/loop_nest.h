// math/core/loop_nest.h: iterates over several strided arrays of the same extents with as few
// nested loops as the strides allow. Internal.
//
//   LoopNest<2> nest(extents, {from_strides, to_strides});
//   nest.ForRows(begin, end, [&](const std::array<int64_t, 2>& at) {
//     // One row: nest.row_size() elements. In array a the first is at offset at[a], and they are
//     // nest.row_stride(a) apart.
//   });
//
// Axes of extent 1 are dropped. Neighboring axes are merged if they are contiguous in every array,
// so that a dense copy is one row.
#ifndef ANEMONE_MATH_CORE_LOOP_NEST_H_
#define ANEMONE_MATH_CORE_LOOP_NEST_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "math/core/extents.h"

namespace anemone::math {

// The strides of a dense operand that is repeated along axes where its extent is 1.
inline Strides RepeatingStrides(const Extents& extents) {
  Strides strides = DenseStrides(extents);
  for (int i = 0; i < kRank; ++i) {
    if (extents[i] == 1) strides[i] = 0;
  }
  return strides;
}

template <int kArrays>
class LoopNest {
 public:
  using Offsets = std::array<int64_t, kArrays>;

  LoopNest(const Extents& extents, const std::array<Strides, kArrays>& strides) {
    for (int i = 0; i < kRank; ++i) {
      if (extents[i] == 1) continue;
      Offsets step;
      for (int a = 0; a < kArrays; ++a) step[a] = strides[a][i];
      if (rank_ > 0 && Chains(step, extents[i])) {
        extents_[rank_ - 1] *= extents[i];
      } else {
        extents_[rank_++] = extents[i];
      }
      steps_[rank_ - 1] = step;
    }
    if (rank_ == 0) {  // a single element
      extents_[rank_++] = 1;
      steps_[0] = {};
    }
    rows_ = 1;
    for (int i = 0; i + 1 < rank_; ++i) rows_ *= extents_[i];
  }

  // One row of `count` elements.
  LoopNest(int64_t count, const Offsets& step) : rank_(1), rows_(1) {
    extents_[0] = count;
    steps_[0] = step;
  }

  int64_t rows() const { return rows_; }
  int64_t row_size() const { return extents_[rank_ - 1]; }
  int64_t row_stride(int array) const { return steps_[rank_ - 1][array]; }
  // From one row of a plane (ForPlanes()) to the next.
  int64_t plane_stride(int array) const { return rank_ > 1 ? steps_[rank_ - 2][array] : 0; }

  // Calls body(offsets) for rows [begin, end), with the offset of the row's first element in each
  // array.
  template <class Body>
  void ForRows(int64_t begin, int64_t end, const Body& body) const {
    ForPlanes(begin, end, [&](Offsets at, int64_t rows) {
      for (; rows > 0; --rows) {
        body(at);
        for (int a = 0; a < kArrays; ++a) at[a] += plane_stride(a);
      }
    });
  }

  // Calls body(offsets, rows) for rows [begin, end), with as many rows at once as are along one
  // axis and the offset of the first one.
  template <class Body>
  void ForPlanes(int64_t begin, int64_t end, const Body& body) const {
    std::array<int64_t, kRank> index{};
    Offsets at{};
    int64_t rest = begin;
    for (int i = rank_ - 2; i >= 0; --i) {
      index[i] = rest % extents_[i];
      rest /= extents_[i];
      for (int a = 0; a < kArrays; ++a) at[a] += index[i] * steps_[i][a];
    }
    for (int64_t row = begin; row < end;) {
      const int64_t left = rank_ > 1 ? extents_[rank_ - 2] - index[rank_ - 2] : 1;
      const int64_t rows = std::min(left, end - row);
      body(at, rows);
      row += rows;
      int64_t steps = rows;
      for (int i = rank_ - 2; i >= 0; --i, steps = 1) {
        index[i] += steps;
        for (int a = 0; a < kArrays; ++a) at[a] += steps * steps_[i][a];
        if (index[i] < extents_[i]) break;
        for (int a = 0; a < kArrays; ++a) at[a] -= extents_[i] * steps_[i][a];
        index[i] = 0;
      }
    }
  }

 private:
  // Whether the last axis so far and an axis of `step` and `extent` after it can be merged.
  bool Chains(const Offsets& step, int64_t extent) const {
    for (int a = 0; a < kArrays; ++a) {
      if (steps_[rank_ - 1][a] != step[a] * extent) return false;
    }
    return true;
  }

  int rank_ = 0;
  int64_t rows_ = 1;
  std::array<int64_t, kRank> extents_{};
  std::array<Offsets, kRank> steps_{};
};

// An array seen as (outer, count, inner), where `count` is the product of some adjacent axes.
struct AxisRun {
  int64_t outer = 1, count = 1, inner = 1;
};

// Finds the run of `axes`, ignoring axes of extent 1. Returns false if they are not adjacent (for
// example C and W without H); the caller must then transpose first.
inline bool FindAxisRun(const Extents& extents, AxisSet axes, AxisRun* run) {
  *run = {};
  bool seen = false, ended = false;
  for (int i = 0; i < kRank; ++i) {
    if (extents[i] == 1) continue;
    if (axes.Has(i)) {
      if (ended) return false;
      seen = true;
      run->count *= extents[i];
    } else {
      ended = seen;
      (seen ? run->inner : run->outer) *= extents[i];
    }
  }
  return true;
}

// The permutation that moves `axes` after the other axes. Both groups keep their order.
inline std::array<int, kRank> AxesLast(AxisSet axes) {
  std::array<int, kRank> permutation{};
  int next = 0;
  for (bool last : {false, true}) {
    for (int i = 0; i < kRank; ++i) {
      if (axes.Has(i) == last) permutation[next++] = i;
    }
  }
  return permutation;
}

inline std::array<int, kRank> Inverse(const std::array<int, kRank>& permutation) {
  std::array<int, kRank> inverse{};
  for (int i = 0; i < kRank; ++i) inverse[permutation[i]] = i;
  return inverse;
}

inline Extents Permuted(const Extents& extents, const std::array<int, kRank>& permutation) {
  Extents permuted;
  for (int i = 0; i < kRank; ++i) permuted[i] = extents[permutation[i]];
  return permuted;
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_LOOP_NEST_H_
