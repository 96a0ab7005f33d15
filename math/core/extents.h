// math/core/extents.h: sizes and strides along the engine's five axes N, D, C, H, W.
//
//   Extents x = {1, 1, 64, 56, 56};
//   Count(x);           // 200704
//   DenseStrides(x);    // {200704, 200704, 3136, 56, 1}: row-major, W fastest
//   AxisSet({kAxisH, kAxisW}).Has(kAxisC);   // false
//
// All arrays in math are dense in this order unless a function takes strides. The caller must pass
// spans whose sizes match the extents; debug builds assert it. No function of math validates
// models.
#ifndef ANEMONE_MATH_CORE_EXTENTS_H_
#define ANEMONE_MATH_CORE_EXTENTS_H_

#include <array>
#include <cstdint>
#include <initializer_list>

namespace anemone::math {

inline constexpr int kRank = 5;
enum Axis : int { kAxisN = 0, kAxisD = 1, kAxisC = 2, kAxisH = 3, kAxisW = 4 };

using Extents = std::array<int64_t, kRank>;  // each at least 1, unless a function says otherwise
using Strides = std::array<int64_t, kRank>;  // in elements; 0 repeats, negative reads backwards

inline int64_t Count(const Extents& extents) {
  int64_t count = 1;
  for (int64_t extent : extents) count *= extent;
  return count;
}

inline Strides DenseStrides(const Extents& extents) {
  Strides strides;
  int64_t stride = 1;
  for (int i = kRank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= extents[i];
  }
  return strides;
}

class AxisSet {
 public:
  AxisSet() = default;
  AxisSet(std::initializer_list<int> axes) {
    for (int axis : axes) Add(axis);
  }
  void Add(int axis) { bits_ = static_cast<uint8_t>(bits_ | (1u << axis)); }
  bool Has(int axis) const { return (bits_ >> axis) & 1; }
  bool empty() const { return bits_ == 0; }

 private:
  uint8_t bits_ = 0;
};

// `extents` with 1 at every axis of `axes`: the shape of a reduction's result.
inline Extents Reduced(Extents extents, AxisSet axes) {
  for (int i = 0; i < kRank; ++i) {
    if (axes.Has(i)) extents[i] = 1;
  }
  return extents;
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_EXTENTS_H_
