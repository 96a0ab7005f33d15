// math/conv/conv_transpose.h: 2-D transposed convolution (ONNX ConvTranspose).
//
//   ConvTransposeShape shape{.in_channels = 64, .in_h = 28, .in_w = 28, .out_channels = 32,
//                            .window = {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w =
//                            2}};
//   PackedConvTranspose op = PackConvTranspose(shape, weights /* 64x32x2x2 */, bias);
//   ConvTranspose(op, x, y);            // y is (1, 32, 56, 56)
//
// y[n, o, i*sh + kh*dh - top, j*sw + kw*dw - left] += x[n, c, i, j] * w[c, o, kh, kw], then bias,
// one rounding, epilogue. It runs as one ordinary convolution per output phase (i mod sh, j mod sw)
// on the taps that reach that phase, so no zero is ever multiplied and conv.h's promises on order,
// threads and memory hold here too. Where outputs of an input lie side by side (one group, a kernel
// as large as its stride, no padding), one pointwise convolution has all phases as channels; it
// takes scratch as large as y.
#ifndef ANEMONE_MATH_CONV_CONV_TRANSPOSE_H_
#define ANEMONE_MATH_CONV_CONV_TRANSPOSE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/conv/conv.h"
#include "math/conv/window.h"
#include "math/core/half.h"

namespace anemone::math {

// w is (in_channels, out_channels / groups, kernel_h, kernel_w). Output padding adds rows and
// columns at the bottom and right.
struct ConvTransposeShape {
  int64_t batch = 1;
  int64_t in_channels = 1, in_h = 1, in_w = 1;
  int64_t out_channels = 1;
  int64_t groups = 1;
  Window window;
  int64_t output_padding_h = 0, output_padding_w = 0;

  // Both at least 1 for a shape that may be packed.
  int64_t out_h() const {
    return (in_h - 1) * window.stride_h + window.dilation_h * (window.kernel_h - 1) + 1 +
           output_padding_h - window.pad_top - window.pad_bottom;
  }
  int64_t out_w() const {
    return (in_w - 1) * window.stride_w + window.dilation_w * (window.kernel_w - 1) + 1 +
           output_padding_w - window.pad_left - window.pad_right;
  }
};

struct PackedConvTranspose {
  ConvTransposeShape shape;
  // One for each output phase, or one whose channels are [out channel][kernel_h][kernel_w].
  std::vector<PackedConv> convs;
  bool phases_are_channels = false;

  int64_t bytes() const;
};

// `bias` is empty or has out_channels values.
PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape, HalfReader weights,
                                      absl::Span<const float> bias);
PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const Half> weights, absl::Span<const float> bias);
PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const float> weights,
                                      absl::Span<const float> bias);

// `x` and `y` do not overlap.
void ConvTranspose(const PackedConvTranspose& op, absl::Span<const Half> x, absl::Span<Half> y,
                   const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_CONV_TRANSPOSE_H_
