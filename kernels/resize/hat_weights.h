// kernels/resize/hat_weights.h: sampling at places computed at run time, for lowerings. No unit
// that reads an image at computed places has known arithmetic (Resample, CropResize), so an axis is
// sampled by a product: element i weighs max(0, 1 - |place - i|), which is linear interpolation.
#ifndef ANEMONE_KERNELS_RESIZE_HAT_WEIGHTS_H_
#define ANEMONE_KERNELS_RESIZE_HAT_WEIGHTS_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

// What a product of an image with its weights may hold.
inline constexpr int64_t kMostSampled = int64_t{1} << 24;

// `places`, of width 1, as weights of `extent` elements each: their width. A place outside of the
// axis weighs what of it reaches inside.
Operand HatWeights(LowerContext& c, const Operand& places, int64_t extent);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_HAT_WEIGHTS_H_
