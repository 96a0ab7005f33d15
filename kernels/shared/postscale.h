// kernels/shared/postscale.h: the option `postscale` of numerics.json's cmp-int8, in `exact` mode.
#ifndef ANEMONE_KERNELS_SHARED_POSTSCALE_H_
#define ANEMONE_KERNELS_SHARED_POSTSCALE_H_

#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "math/conv/conv.h"
#include "numerics.h"  // generated

namespace anemone {

// The convolution as an array computes it that sums codes of 8 bits and scales behind. False, and
// nothing is done: `n` has the other option, or the weight is not codes with a scale for each
// output channel or for all.
bool PostscaledConv(const math::Numerics& n, const math::ConvShape& shape, const Tensor& weight,
                    absl::Span<const float> bias, absl::Span<const math::Half> x,
                    absl::Span<math::Half> y);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_POSTSCALE_H_
