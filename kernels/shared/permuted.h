// kernels/shared/permuted.h: axes and dims under a permutation of the axes, for the hook
// UnitRow.permuted: axis i is axis order[i] of before.
#ifndef ANEMONE_KERNELS_SHARED_PERMUTED_H_
#define ANEMONE_KERNELS_SHARED_PERMUTED_H_

#include <algorithm>
#include <iterator>
#include <vector>

#include "engine/unit_kind.h"

namespace anemone {

// The new place of `axis`.
inline Axis Permute(Axis axis, const Permutation& order) {
  return static_cast<Axis>(std::find(order.begin(), order.end(), axis) - order.begin());
}

// The new places, sorted.
inline std::vector<Axis> Permute(std::vector<Axis> axes, const Permutation& order) {
  for (Axis& axis : axes) axis = Permute(axis, order);
  std::sort(axes.begin(), axes.end());
  return axes;
}

inline Dims Permute(const Dims& dims, const Permutation& order) {
  Dims moved;
  for (int i = 0; i < kAxisCount; ++i) moved.extent[i] = dims[order[i]];
  return moved;
}

// Whether elements of `dims` keep their order in memory: only axes of extent 1 change places.
inline bool KeepsOrder(const Dims& dims, const Permutation& order) {
  std::vector<Axis> long_axes;
  std::copy_if(order.begin(), order.end(), std::back_inserter(long_axes),
               [&](Axis axis) { return dims[axis] > 1; });
  return std::is_sorted(long_axes.begin(), long_axes.end());
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_PERMUTED_H_
