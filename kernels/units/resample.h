// kernels/units/resample.h: for lowerings: samples images at computed positions.
#ifndef ANEMONE_KERNELS_UNITS_RESAMPLE_H_
#define ANEMONE_KERNELS_UNITS_RESAMPLE_H_

#include "kernels/lowering.h"
#include "kernels/resize/sampling.h"

namespace anemone {

// A Resample unit: `x`, N x C x H x W, at the positions `places`, N (or 1) x 2 x rows x columns.
// The first channel of `places` is the column in the image, the second one the row, counted in
// elements from 0. The result is N x C x rows x columns. `padding` says what is read outside of the
// image.
Operand Resampled(NetworkBuilder& c, const Operand& x, const Operand& places, SamplingMethod method,
                  SamplePadding padding);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_RESAMPLE_H_
