// kernels/resize/sampler.h: samples images at any positions, as the software engine does it for the
// units of the texture engine.
#ifndef ANEMONE_KERNELS_RESIZE_SAMPLER_H_
#define ANEMONE_KERNELS_RESIZE_SAMPLER_H_

#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "engine/unit_kind.h"
#include "kernels/resize/sampling.h"

namespace anemone {

// How to sample along columns (index 0) and rows (index 1). Nearest rounds half to even, as ONNX's
// GridSample does. An element outside of the image is read by the padding: Symmetric mirrors at the
// outer edge of the border element, Reflective at its center.
struct Sampler {
  std::array<SamplingMethod, 2> methods;
  std::array<SamplePadding, 2> padding;
  math::Half background;  // for padding Background
};

// False for Negative and DontCare, which Sample() does not know.
bool CanSample(SamplePadding padding);

// A position in elements, counted from the center of the first one. Positions may be infinite; NaN
// is that of the first element.
struct SamplePoint {
  float column, row;
};
using SamplePointOf = absl::FunctionRef<SamplePoint(int64_t image, int64_t point)>;

// `image` is N x C x H x W, `out` N x C x rows x columns; place(n, p) is the position in image n of
// point p, counted in the order of `out`. Computes in fp32, with one rounding at the end.
void Sample(const Sampler& sampler, const ConstView& image, SamplePointOf place, View out);

// The same in exact mode: the option ew-texture (numerics.json) decides whether the weights are
// rounded to fp16. Products and sums are wide, and the result is rounded once.
void SampleExactly(const Sampler& sampler, const math::Numerics& n, const ConstView& image,
                   SamplePointOf place, View out);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_SAMPLER_H_
