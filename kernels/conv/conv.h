// kernels/conv/conv.h: the convolution unit, and adding one: for lowerings of convolutions, of
// fully connected layers and of repeats.
#ifndef ANEMONE_KERNELS_CONV_CONV_H_
#define ANEMONE_KERNELS_CONV_CONV_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/shared/window.h"

namespace anemone {

// As a netplist spells them (compiler_texts.json netplist_keys, Conv).
enum class ConvType : uint8_t {
  kConv,
  kChannelWiseConv,
  kDeConv,
  kChannelWiseDeConv,
  kDilatedConv,
  kChannelWiseDilatedConv,
};
absl::Span<const char* const> NamesOf(ConvType);

// kUnity: a kernel of ones, which is not stored.
enum class KernelMode : uint8_t { kDense, kUnity };
absl::Span<const char* const> NamesOf(KernelMode);

// The formats a kernel may have (validators.json, mask 0x3b), spelled as enums.json
// E5_TensorDataType; a netplist was seen with Float16 alone.
enum class KernelFormat : uint8_t { kFloat16, kFloat32, kInt8, kUInt8, kE4M3 };
absl::Span<const char* const> NamesOf(KernelFormat);

struct ConvParams {
  ConvType type = ConvType::kConv;
  KernelMode mode = KernelMode::kDense;
  KernelFormat format = KernelFormat::kFloat16;
  PaddingMode padding_mode = PaddingMode::kZero;
  PadType pad_type = PadType::kCustom;  // of a set of keys; settled when it is read
  int64_t out_channels = 1, groups = 1;
  int64_t kernel_channels = 0;  // input channels of a kernel; 0: as many as fit
  bool has_kernel = true;       // a weight, a second bottom, or ones
  Along h, w, d;                // pads of a deconvolution are cut off its output
  bool in_major = false;        // a 1x1 kernel stored (in, out), with these dims

  bool transposed() const {
    return type == ConvType::kDeConv || type == ConvType::kChannelWiseDeConv;
  }
  bool channel_wise() const {
    return type == ConvType::kChannelWiseConv || type == ConvType::kChannelWiseDeConv ||
           type == ConvType::kChannelWiseDilatedConv;
  }
};

// Bottoms: x and, if it is made at run time, the kernel. Weights: the kernel, if it is not a
// bottom, and the bias; the kernel is (out, in / groups, [d,] h, w), a deconvolution's (in, out /
// groups, ...); a 1x1 kernel may be (in, out).
const UnitKindOf<ConvParams>& ConvUnit();

// A Conv or ConvTranspose (1 to 3 spatial axes) whose kernel and bias are constants.
struct ConvNode {
  std::vector<int64_t> x, w, y;  // shapes of input, kernel and output
  const Tensor* kernel = nullptr;
  const Tensor* bias = nullptr;  // null if there is none
  ConvParams params;
};

// What the attributes and shapes of such a node say, whoever makes its kernel.
absl::StatusOr<ConvParams> ReadConvParams(const Node& node, LowerContext& c);

// Not lowered: a kernel or bias computed at run time, an integer kernel.
absl::StatusOr<ConvNode> ReadConvNode(const Node& node, LowerContext& c);

// Every position of `x` times a 1x1 kernel, plus `bias` if not null: `out_channels` channels. The
// kernel is stored (out, in), or (in, out) if `in_major`.
Operand PointwiseConv(NetworkBuilder& c, const Operand& x, int64_t out_channels,
                      const Tensor& kernel, bool in_major, const Tensor* bias);

// Every element twice along the height, the width, or both: nearest upsampling by 2 as the
// compiler's clients write it, a channelwise deconvolution whose kernel is all ones
// (compiler_texts.json lowering_recipes, "nearest upsampling by 2^n").
Operand Doubled(NetworkBuilder& c, const Operand& x, bool height, bool width);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_CONV_H_
