// kernels/shared/memory_order.h: the order in which Flatten and Unflatten read elements. Names:
// enums.json ZinIrFlattenType.
#ifndef ANEMONE_KERNELS_SHARED_MEMORY_ORDER_H_
#define ANEMONE_KERNELS_SHARED_MEMORY_ORDER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/dims.h"
#include "math/core/extents.h"

namespace anemone {

enum class MemoryOrder : uint8_t { kNCHW, kNHWC };

inline absl::Span<const char* const> NamesOf(MemoryOrder) {
  static constexpr const char* kNames[] = {"NCHW", "NHWC"};
  return kNames;
}

// Where the elements of an image of `dims` lie in a row: depth, then channels, before or behind the
// place. Depth is a choice: the orders' names have none, and NCHW is called the identity
// (hidden_layers.json Flatten), so it stays where memory has it.
inline math::Strides StridesOf(MemoryOrder order, const Dims& dims) {
  if (order == MemoryOrder::kNCHW) return math::DenseStrides(dims.extent);
  const int64_t plane = dims.h() * dims.w() * dims.c();
  return {dims.d() * plane, plane, 1, dims.w() * dims.c(), dims.c()};
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_MEMORY_ORDER_H_
