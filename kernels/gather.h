// kernels/gather.h: elements at constant places, for lowerings.
#ifndef ANEMONE_KERNELS_GATHER_H_
#define ANEMONE_KERNELS_GATHER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// The elements of `x`, 1 x C x H x W, at `places` (row * W + column) of each of its planes:
// 1 x C x 1 x places. kUnimplemented if a place or an axis is past a uint16.
absl::StatusOr<Operand> PickedElements(NetworkBuilder& c, const Operand& x,
                                       absl::Span<const int64_t> places);

// Elements `indices` along ONNX axis `axis` of `x`, a value of shape `from`.
absl::StatusOr<Operand> GatheredAlong(NetworkBuilder& c, const Operand& x,
                                      absl::Span<const int64_t> from, int axis,
                                      absl::Span<const int64_t> indices);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_GATHER_H_
