// kernels/units/padding.h: padding with a constant, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_PADDING_H_
#define ANEMONE_KERNELS_UNITS_PADDING_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

struct SpatialPads {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// x within a frame of `value`. No unit if the frame is empty.
Operand Framed(NetworkBuilder& c, const Operand& x, const SpatialPads& pads, float value);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_PADDING_H_
