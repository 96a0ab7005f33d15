// kernels/shared/postscale.h: convolution with 8-bit weights in `exact` mode, for the option
// `postscale` of the rule cmp-int8 (numerics.json).
#ifndef ANEMONE_KERNELS_SHARED_POSTSCALE_H_
#define ANEMONE_KERNELS_SHARED_POSTSCALE_H_

#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "math/conv/conv.h"
#include "numerics.h"  // generated

namespace anemone {

// Computes the convolution as an array that sums products with the 8-bit codes and applies the
// scale to the sum. Returns false, without computing anything, if `n` has the other option, or if
// the weight is not 8-bit codes with one scale in all or one for each output channel.
bool PostscaledConv(const math::Numerics& n, const math::ConvShape& shape, const Tensor& weight,
                    absl::Span<const float> bias, absl::Span<const math::Half> x,
                    absl::Span<math::Half> y);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_POSTSCALE_H_
