// kernels/memory_order.h: the order in which Flatten and Unflatten read elements. Names: enums.json
// ZinIrFlattenType.
#ifndef ANEMONE_KERNELS_MEMORY_ORDER_H_
#define ANEMONE_KERNELS_MEMORY_ORDER_H_

#include <cstdint>

#include "absl/types/span.h"

namespace anemone {

enum class MemoryOrder : uint8_t { kNCHW, kNHWC };

inline absl::Span<const char* const> NamesOf(MemoryOrder) {
  static constexpr const char* kNames[] = {"NCHW", "NHWC"};
  return kNames;
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MEMORY_ORDER_H_
