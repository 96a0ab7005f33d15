// kernels/units/crop_resize.h: for lowerings: crops boxes from an image and scales them.
#ifndef ANEMONE_KERNELS_UNITS_CROP_RESIZE_H_
#define ANEMONE_KERNELS_UNITS_CROP_RESIZE_H_

#include <cstdint>

#include "kernels/lowering.h"

namespace anemone {

// A CropResize unit: K boxes of `x`, 1 x C x H x W, each scaled to height x width: K x C x height x
// width. `boxes` is K x 4 x 1 x 1: left, top, right and bottom, counted in elements from the outer
// edge of the first one. Sample i of n is at start + (i + 0.5) * (end - start) / n - 0.5, counted
// from the center of the first element, and is linear. A sample outside of the image is that of the
// border.
Operand Cropped(NetworkBuilder& c, const Operand& x, const Operand& boxes, int64_t height,
                int64_t width);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_CROP_RESIZE_H_
