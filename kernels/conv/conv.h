// kernels/conv/conv.h: the convolution unit, for lowerings of convolutions, of fully connected
// layers and of nearest upsampling.
#ifndef ANEMONE_KERNELS_CONV_CONV_H_
#define ANEMONE_KERNELS_CONV_CONV_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/shared/window.h"

namespace anemone {

// The types, named as in a netplist (compiler_texts.json netplist_keys, Conv).
enum class ConvType : uint8_t {
  kConv,
  kChannelWiseConv,
  kDeConv,
  kChannelWiseDeConv,
  kDilatedConv,
  kChannelWiseDilatedConv,
};
absl::Span<const char* const> NamesOf(ConvType);

// kUnity: all elements of the kernel are 1, and it is not stored.
enum class KernelMode : uint8_t { kDense, kUnity };
absl::Span<const char* const> NamesOf(KernelMode);

// The formats a kernel may have (validators.json, mask 0x3b), named as in enums.json
// E5_TensorDataType. The only netplists seen have Float16.
enum class KernelFormat : uint8_t { kFloat16, kFloat32, kInt8, kUInt8, kE4M3 };
absl::Span<const char* const> NamesOf(KernelFormat);

struct ConvParams {
  ConvType type = ConvType::kConv;
  KernelMode mode = KernelMode::kDense;
  KernelFormat format = KernelFormat::kFloat16;
  PaddingMode padding_mode = PaddingMode::kZero;
  PadType pad_type = PadType::kCustom;  // as authored; replaced by pads when keys are read
  int64_t out_channels = 1, groups = 1;
  int64_t kernel_channels = 0;  // input channels of the kernel; 0: implied by the input
  bool has_kernel = true;       // as a weight, as a second bottom, or as ones
  Along h, w, d;                // a deconvolution crops its output by the pads
  bool in_major = false;        // a 1x1 kernel stored (in, out), with these dims

  bool transposed() const {
    return type == ConvType::kDeConv || type == ConvType::kChannelWiseDeConv;
  }
  bool channel_wise() const {
    return type == ConvType::kChannelWiseConv || type == ConvType::kChannelWiseDeConv ||
           type == ConvType::kChannelWiseDilatedConv;
  }
};

// Bottoms: x and, if it is computed at run time, the kernel. Weights: the kernel, unless it is a
// bottom, and the bias if there is one. The kernel is (out, in / groups, [d,] h, w), and (in, out /
// groups, [d,] h, w) in a deconvolution. A 1x1 kernel may be (in, out).
const UnitKindOf<ConvParams>& ConvUnit();

// A Conv or ConvTranspose (1 to 3 spatial axes) whose kernel and bias are constants.
struct ConvNode {
  std::vector<int64_t> x, w, y;  // shapes of input, kernel and output
  const Tensor* kernel = nullptr;
  const Tensor* bias = nullptr;  // null if there is none
  ConvParams params;
};

// The parameters of such a node from its attributes and shapes. The kernel need not be constant.
absl::StatusOr<ConvParams> ReadConvParams(const Node& node, LowerContext& c);

// Not lowered if the kernel or the bias is computed at run time, or if the kernel has integers.
absl::StatusOr<ConvNode> ReadConvNode(const Node& node, LowerContext& c);

// A 1x1 convolution of `x` to `out_channels` channels, plus `bias` unless it is null. The kernel is
// stored (out, in), or (in, out) if `in_major`.
Operand PointwiseConv(NetworkBuilder& c, const Operand& x, int64_t out_channels,
                      const Tensor& kernel, bool in_major, const Tensor* bias);

// The matrix of a 1x1 convolution of one group without strides and pads, stored (out, in), or (in,
// out) if `in_major`; null for other units.
struct PointwiseKernel {
  const Tensor* matrix = nullptr;
  int64_t in = 1, out = 1;
  bool in_major = false;
};
PointwiseKernel PointwiseKernelOf(const Unit& unit);

// Nearest upsampling by 2 along the height, the width or both: a channelwise deconvolution with a
// kernel of ones, as the clients of Apple's compiler write it (compiler_texts.json
// lowering_recipes, "nearest upsampling by 2^n").
Operand Doubled(NetworkBuilder& c, const Operand& x, bool height, bool width);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_CONV_H_
