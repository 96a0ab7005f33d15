// kernels/units/affine_transform.h: for lowerings: samples images on a grid that a matrix moves.
#ifndef ANEMONE_KERNELS_UNITS_AFFINE_TRANSFORM_H_
#define ANEMONE_KERNELS_UNITS_AFFINE_TRANSFORM_H_

#include <cstdint>

#include "kernels/lowering.h"
#include "kernels/resize/sampling.h"

namespace anemone {

struct AffineSampling {
  int64_t height = 1, width = 1;  // of the result
  SamplingMethod method = SamplingMethod::kLinear;
  SamplePadding padding = SamplePadding::kZero;
  bool aligned = false;  // ONNX's align_corners, of the grid and of the image
};

// An AffineTransform unit: ONNX's AffineGrid and GridSample. `x` is N x C x H x W, `matrices`
// N x 6 x 1 x 1 (the rows of a 2 x 3 matrix for each image). The result is N x C x height x width.
Operand AffineTransformed(NetworkBuilder& c, const Operand& x, const Operand& matrices,
                          const AffineSampling& sampling);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_AFFINE_TRANSFORM_H_
