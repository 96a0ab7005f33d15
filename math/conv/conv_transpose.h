// math/conv/conv_transpose.h: 2-D transposed convolution (ONNX ConvTranspose).
//
//   ConvTransposeShape shape{.in_channels = 64, .in_h = 28, .in_w = 28, .out_channels = 32,
//                            .window = {.kernel_h = 2, .kernel_w = 2,
//                                       .stride_h = 2, .stride_w = 2}};
//   PackedConvTranspose op = PackConvTranspose(shape, weights /* 64x32x2x2 */, bias);
//   ConvTranspose(op, x, y);            // y is (1, 32, 56, 56)
//
// y[n, o, i*sh + kh*dh - top, j*sw + kw*dw - left] += x[n, c, i, j] * w[c, o, kh, kw], then bias,
// one rounding, epilogue.
//
// It runs as one ordinary convolution per output phase (i mod sh, j mod sw), with the taps that
// reach that phase. So it multiplies no inserted zeros, and conv.h's guarantees on order, threads
// and memory apply. If the outputs of different inputs do not overlap (kernel equal to stride, no
// padding), it runs as one pointwise convolution that has all phases as channels; this needs
// scratch as large as y. Small planes that overlap are products of every input with every tap, each
// a sum over the channels, then the sums of these (col2im.cc).
#ifndef ANEMONE_MATH_CONV_CONV_TRANSPOSE_H_
#define ANEMONE_MATH_CONV_CONV_TRANSPOSE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/conv/conv.h"
#include "math/conv/window.h"
#include "math/core/half.h"

namespace anemone::math {

// x is (batch, in_channels, in_h, in_w). w is (in_channels, out_channels / groups, kernel_h,
// kernel_w). y is (batch, out_channels, out_h(), out_w()). Output padding adds rows and columns at
// the bottom and right.
struct ConvTransposeShape {
  int64_t batch = 1;
  int64_t in_channels = 1, in_h = 1, in_w = 1;
  int64_t out_channels = 1;
  int64_t groups = 1;
  Window window;
  int64_t output_padding_h = 0, output_padding_w = 0;

  // PackConvTranspose() requires both to be at least 1.
  int64_t out_h() const {
    return (in_h - 1) * window.stride_h + window.dilation_h * (window.kernel_h - 1) + 1 +
           output_padding_h - window.pad_top - window.pad_bottom;
  }
  int64_t out_w() const {
    return (in_w - 1) * window.stride_w + window.dilation_w * (window.kernel_w - 1) + 1 +
           output_padding_w - window.pad_left - window.pad_right;
  }
};

// The convolution with stride 1 that computes output positions phase, phase + stride, ... along one
// axis.
struct PhaseAxis {
  std::vector<int64_t> taps;  // of the kernel, in the order of their inputs, which is backwards
  int64_t dilation = 1;
  int64_t pad = 0;   // may be negative
  int64_t size = 0;  // output positions
};

enum class TransposeWay {
  kPhases,    // one convolution for each output phase
  kChannels,  // one convolution whose channels are [out channel][kernel_h][kernel_w], placed
  kCol2im,    // the same, summed
};

struct PackedConvTranspose {
  ConvTransposeShape shape;
  TransposeWay way = TransposeWay::kPhases;
  std::vector<PackedConv> convs;
  std::vector<PhaseAxis> row_phases, column_phases;  // kCol2im

  int64_t bytes() const;
};

// `bias` is empty or has out_channels values. `id` is that of the weights.
PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape, HalfReader weights,
                                      absl::Span<const float> bias, ConstantId id = {});
PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const Half> weights, absl::Span<const float> bias,
                                      ConstantId id = {});
PackedConvTranspose PackConvTranspose(const ConvTransposeShape& shape,
                                      absl::Span<const float> weights,
                                      absl::Span<const float> bias);

// `x` and `y` must not overlap.
void ConvTranspose(const PackedConvTranspose& op, absl::Span<const Half> x, absl::Span<Half> y,
                   const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_CONV_TRANSPOSE_H_
