// kernels/conv.h: the convolution unit, and adding one: for lowerings of convolutions that are more
// than one unit, and of fully connected layers.
#ifndef ANEMONE_KERNELS_CONV_H_
#define ANEMONE_KERNELS_CONV_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

// Along one spatial axis.
struct Along {
  int64_t kernel = 1, stride = 1, dilation = 1, pad_before = 0, pad_after = 0, output_padding = 0;
  int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

struct ConvParams {
  bool transposed = false;
  int64_t out_channels = 1, groups = 1;
  Along h, w, d;
  bool in_major = false;  // a 1x1 kernel stored (in, out) in the model
};

// Bottom: x. Weights: the kernel, (out, in / groups, [d,] h, w) or a deconvolution's (in, out /
// groups, ...), and the bias, which may be left out.
const UnitKindOf<ConvParams>& ConvUnit();

// A Conv or ConvTranspose (1 to 3 spatial axes) whose kernel and bias are constants.
struct ConvNode {
  std::vector<int64_t> x, w, y;  // shapes of input, kernel and output
  const Tensor* kernel = nullptr;
  const Tensor* bias = nullptr;  // null if there is none
  ConvParams params;
};

// Not lowered: a kernel or bias computed at run time, an integer kernel.
absl::StatusOr<ConvNode> ReadConvNode(const Node& node, LowerContext& c);

// Every position of `x` times a 1x1 kernel, plus `bias` if not null: `out_channels` channels. The
// kernel is stored (out, in), or (in, out) if `in_major`.
absl::StatusOr<Operand> PointwiseConv(LowerContext& c, const Operand& x, int64_t out_channels,
                                      const Tensor& kernel, bool in_major, const Tensor* bias);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_H_
