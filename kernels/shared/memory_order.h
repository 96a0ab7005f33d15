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

// Strides of an image's elements in the flattened row. The position of the depth axis is our
// choice, because the names of the orders do not mention it: it is the outermost axis of an image,
// as in memory, since NCHW is documented as the identity (hidden_layers.json Flatten).
inline math::Strides StridesOf(MemoryOrder order, const Dims& dims) {
  if (order == MemoryOrder::kNCHW) return math::DenseStrides(dims.extent);
  const int64_t plane = dims.h() * dims.w() * dims.c();
  return {dims.d() * plane, plane, 1, dims.w() * dims.c(), dims.c()};
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_MEMORY_ORDER_H_
