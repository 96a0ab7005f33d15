// math/conv/conv.h: 2-D convolution (ONNX's: the kernel is not flipped).
//
//   ConvShape shape{.batch = 1, .in_channels = 64, .in_h = 56, .in_w = 56, .out_channels = 64,
//                   .window = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1,
//                              .pad_bottom = 1, .pad_right = 1}};
//   PackedConv conv = PackConv(shape, weights /* 64x64x3x3 */, bias /* 64, or empty */);  // once
//   Conv(conv, x, y);                                                          // at every run
//
// y[n, o, i, j] = Half(bias[o] + sum over c, kh, kw of x * w): products are exact in fp32, the sum
// is fp32 in the order c, kh, kw for every output element, whatever the machine's vector length and
// the number of threads; so the same bits come out everywhere. Not so the larger of 3x3 and stride
// 1 and of 1x1, which take fewer products (winograd.cc, strassen_conv.cc): there sums differ by
// some 1e-6 of the largest values around them (1e-5 where weights or values reach 2^14), and by
// instruction set, but not by the number of threads or the place in the batch.
//
// Cost: weights are kept as Half, 2 bytes each (or in the compressed form they came in), plus
// padding of the output channels to a multiple of 4 (of 32 where winograd.cc computes, of 48 for
// images of so few positions that channels fill vectors better). A run keeps scratch of about 1 MB
// per thread, for winograd.cc up to 10 KB for each input channel, for strassen_conv.cc up to 2 MB.
// Threads: work is split over the caller's oneTBB arena. Conv() may be called from many threads
// with one PackedConv.
#ifndef ANEMONE_MATH_CONV_CONV_H_
#define ANEMONE_MATH_CONV_CONV_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "math/conv/window.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/move/convert.h"

namespace anemone::math {

// x is (batch, in_channels, in_h, in_w); the engine's N and D axes together are the batch.
// w is (out_channels, in_channels / groups, kernel_h, kernel_w); y is (batch, out_channels,
// out_h(), out_w()). groups divides both channel counts.
struct ConvShape {
  int64_t batch = 1;
  int64_t in_channels = 1, in_h = 1, in_w = 1;
  int64_t out_channels = 1;
  int64_t groups = 1;
  Window window;

  int64_t out_h() const {
    return WindowedSize(in_h, window.kernel_h, window.stride_h, window.dilation_h,
                        window.pad_top + window.pad_bottom);
  }
  int64_t out_w() const {
    return WindowedSize(in_w, window.kernel_w, window.stride_w, window.dilation_w,
                        window.pad_left + window.pad_right);
  }
};

struct CodedWeights;

// A convolution ready to run: its shape, its weights in the order the kernel reads them, its bias.
class PackedConv {
 public:
  PackedConv();
  PackedConv(PackedConv&&) noexcept;
  PackedConv& operator=(PackedConv&&) noexcept;
  ~PackedConv();

  int64_t bytes() const;  // memory held

  struct State;
  const State& state() const { return *state_; }  // for conv.cc and its kin
  explicit PackedConv(std::unique_ptr<const State> state);

 private:
  std::unique_ptr<const State> state_;
};

// `bias` is empty or has out_channels values. `coded`: how the same weights are stored, if they are
// compressed (weight_panels.h); they stay so.
PackedConv PackConv(const ConvShape& shape, HalfReader weights, absl::Span<const float> bias,
                    const CodedWeights* coded = nullptr);
PackedConv PackConv(const ConvShape& shape, absl::Span<const Half> weights,
                    absl::Span<const float> bias);
// Weights are rounded to Half first, as the engine stores them.
PackedConv PackConv(const ConvShape& shape, absl::Span<const float> weights,
                    absl::Span<const float> bias);

// `x` and `y` do not overlap. The epilogue must be empty where an output is sparse in its plane
// (ConvTranspose).
void Conv(const PackedConv& conv, absl::Span<const Half> x, absl::Span<Half> y,
          const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_CONV_H_
