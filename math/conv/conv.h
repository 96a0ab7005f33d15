// math/conv/conv.h: 2-D convolution as in ONNX (the kernel is not flipped).
//
//   ConvShape shape{.batch = 1, .in_channels = 64, .in_h = 56, .in_w = 56, .out_channels = 64,
//                   .window = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1,
//                              .pad_bottom = 1, .pad_right = 1}};
//   PackedConv conv = PackConv(shape, weights /* 64x64x3x3 */, bias /* 64, or empty */);  // once
//   Conv(conv, x, y);                                                           // for every run
//
// y[n, o, i, j] = Half(bias[o] + sum over c, kh, kw of x * w). Products are exact in fp32. The sum
// is fp32 in the order c, kh, kw for every output element, for any vector length and number of
// threads, so the bits are the same on every machine.
//
// Large 3x3, 1x3 and 1x5 convolutions with stride 1 are exceptions: they use an algorithm with
// fewer products (winograd.cc). Their sums differ by about 1e-6 of the largest values around them
// (1e-5 where weights or values reach 2^14). They depend on the instruction set, but not on the
// number of threads or the position in the batch.
//
// If the input is on a grid of 8-bit codes and the weights are 8-bit codes, a processor with
// AVX512-VNNI multiplies the codes (byte_conv.cc): the sum is exact, and values are not rounded to
// fp16 before they are multiplied.
//
// Zeros among the weights of a 1x1 convolution are left out if there are many (sparse.cc), which
// changes no bit.
//
// Memory: weights are kept as Half, 2 bytes each, or in the compressed form they were given in. The
// output channels are padded to a multiple of 4 (of 32 for winograd.cc, of 48 for
// ConvKind::kMatrix, which is for few output positions). Each thread keeps about 1 MB of scratch;
// up to 10 KB per input channel for winograd.cc.
//
// Threads: work is split over the caller's oneTBB arena. Many threads may call Conv() with the same
// PackedConv.
#ifndef ANEMONE_MATH_CONV_CONV_H_
#define ANEMONE_MATH_CONV_CONV_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "math/conv/window.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/core/shared_pack.h"
#include "math/gemm/code_grid.h"
#include "math/move/convert.h"

namespace anemone::math {

// x is (batch, in_channels, in_h, in_w), where batch is the product of the engine's axes N and D.
// w is (out_channels, in_channels / groups, kernel_h, kernel_w); if `in_major`, it is (in_channels,
// out_channels), of a 1x1 kernel of one group.
// y is (batch, out_channels, out_h(), out_w()).
// `groups` must divide both numbers of channels.
struct ConvShape {
  int64_t batch = 1;
  int64_t in_channels = 1, in_h = 1, in_w = 1;
  int64_t out_channels = 1;
  int64_t groups = 1;
  Window window;
  bool in_major = false;

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
  const State& state() const { return *state_; }  // for the files of math/conv
  explicit PackedConv(std::unique_ptr<const State> state);

 private:
  std::unique_ptr<const State> state_;
};

// `bias` is empty or has out_channels values. `coded` is the compressed form of the same weights,
// or null. Compressed weights stay compressed (weight_panels.h). `id` is that of the weights.
// `grid` is that of all values of the input, if they have one.
PackedConv PackConv(const ConvShape& shape, HalfReader weights, absl::Span<const float> bias,
                    const CodedWeights* coded = nullptr, ConstantId id = {},
                    std::optional<CodeGrid> grid = std::nullopt);
PackedConv PackConv(const ConvShape& shape, absl::Span<const Half> weights,
                    absl::Span<const float> bias);
// Rounds the weights to Half first, because the engine stores them as fp16.
PackedConv PackConv(const ConvShape& shape, absl::Span<const float> weights,
                    absl::Span<const float> bias);

// `x` and `y` must not overlap. The epilogue must be empty for the phases of a ConvTranspose, whose
// outputs are not contiguous.
void Conv(const PackedConv& conv, absl::Span<const Half> x, absl::Span<Half> y,
          const Epilogue& epilogue = {});

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_CONV_H_
