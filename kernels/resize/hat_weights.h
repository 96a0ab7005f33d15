// kernels/resize/hat_weights.h: linear interpolation at positions computed at run time, for
// lowerings. The arithmetic of the units that read an image at computed positions (Resample,
// CropResize) is not published. An axis is therefore sampled by a matrix product in which element i
// has the weight max(0, 1 - |position - i|).
#ifndef ANEMONE_KERNELS_RESIZE_HAT_WEIGHTS_H_
#define ANEMONE_KERNELS_RESIZE_HAT_WEIGHTS_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

// Converts positions (width 1) to weights: the width becomes `extent`, one weight for each element
// of the axis. At a position outside of the axis, elements that are not there have no weight.
Operand HatWeights(LowerContext& c, const Operand& places, int64_t extent);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_HAT_WEIGHTS_H_
