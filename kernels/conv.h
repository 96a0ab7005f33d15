// kernels/conv.h: adding a convolution, for lowerings of fully connected layers.
#ifndef ANEMONE_KERNELS_CONV_H_
#define ANEMONE_KERNELS_CONV_H_

#include "kernels/lowering.h"

namespace anemone {

// Every position of `x` times a 1x1 kernel, plus `bias` if not null: `out_channels` channels. The
// kernel is stored (out, in), or (in, out) if `in_major`.
absl::StatusOr<Operand> PointwiseConv(NetworkBuilder& c, const Operand& x, int64_t out_channels,
                                      const Tensor& kernel, bool in_major, const Tensor* bias);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_H_
