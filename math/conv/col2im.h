// math/conv/col2im.h: transposed convolutions of small planes whose outputs overlap. Internal.
#ifndef ANEMONE_MATH_CONV_COL2IM_H_
#define ANEMONE_MATH_CONV_COL2IM_H_

#include "absl/types/span.h"
#include "math/conv/conv_transpose.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"

namespace anemone::math {

// Whether it is faster than a convolution for each phase, which multiplies padding, too.
bool Col2imPays(const ConvTransposeShape& shape);
// `by_taps` has the shape (out_channels, kernel_h, kernel_w, in_channels / groups).
PackedConv PackCol2im(const ConvTransposeShape& shape, absl::Span<const Half> by_taps,
                      absl::Span<const float> bias, ConstantId id);
void RunCol2im(const PackedConvTranspose& op, const Half* x, Half* y, const Epilogue& epilogue);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_COL2IM_H_
