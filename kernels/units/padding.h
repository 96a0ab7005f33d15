// kernels/units/padding.h: for lowerings: pads height and width with a constant.
#ifndef ANEMONE_KERNELS_UNITS_PADDING_H_
#define ANEMONE_KERNELS_UNITS_PADDING_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

struct SpatialPads {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// `x` padded with `value`. No unit is added if all pads are 0.
Operand Framed(NetworkBuilder& c, const Operand& x, const SpatialPads& pads, float value);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_PADDING_H_
