// KernelRasterizer: puts the patch under a kernel at each position along the channels (im2col).
// Facts: hidden_layers.json additional_units. They are a name ("patch expansion unit"), the keys
// and the mode UnfoldedChannels; no validator, shape rule or formula is published. This file
// implements the simplest interpretation, so its verdicts are `predicted`.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/lowering.h"
#include "kernels/shared/bounds.h"
#include "math/move/copy.h"

namespace anemone {
namespace {

enum class RasterizerMode : uint8_t { kUnfoldedChannels };

absl::Span<const char* const> NamesOf(RasterizerMode) {
  static constexpr const char* kNames[] = {"UnfoldedChannels"};
  return kNames;
}

struct KernelRasterizerParams {
  int64_t width = 1, height = 1;
  int64_t groups = 1;
  RasterizerMode mode = RasterizerMode::kUnfoldedChannels;
  int64_t channels = 0;  // OutputChannels as authored; 0 if the key is missing
};

// Each output position holds one patch, so the elements of the kernel become channels. Unlike other
// windowed kinds it has no keys for strides and pads: it has stride 1 and no padding.
absl::StatusOr<Dims> Shape(const KernelRasterizerParams& p, Bottoms in) {
  Dims out = in[0].dims;
  if (std::min({p.width, p.height, p.groups}) < 1) {
    return absl::InvalidArgumentError("want kernel extents and NumGroups of at least 1");
  }
  if (p.width > std::min(out.w(), kTableBound) || p.height > std::min(out.h(), kTableBound) ||
      out.c() > kTableBound) {
    return absl::InvalidArgumentError("the kernel does not fit into the image");
  }
  if (out.c() % p.groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "NumGroups: ", out.c(), " channels are not divisible into ", p.groups, " groups"));
  }
  out[Axis::kC] *= p.width * p.height;
  out[Axis::kH] -= p.height - 1;
  out[Axis::kW] -= p.width - 1;
  // A netplist with another number follows a rule that Anemone does not know.
  if (p.channels != 0 && p.channels != out.c()) {
    return absl::InvalidArgumentError(
        absl::StrCat("OutputChannels: want ", out.c(), ", got ", p.channels));
  }
  return out;
}

Verdict Validate(const KernelRasterizerParams&, Bottoms, const Target& target, Route route) {
  Verdict accepted = Judge(target, route).Accept();
  accepted.status = Weaker(accepted.status, Status::kPredicted);
  return accepted;
}

constexpr Field<KernelRasterizerParams> kFields[] = {
    Required<&KernelRasterizerParams::width>("KernelWidth"),
    Required<&KernelRasterizerParams::height>("KernelHeight"),
    Key<&KernelRasterizerParams::groups>("NumGroups"),
    Required<&KernelRasterizerParams::mode>("RasterizerMode"),
    Alias<&KernelRasterizerParams::channels>("OutputChannels"),
};

// Output channel (c, i, j) is channel c shifted by i rows and j columns. This is the order of a
// convolution's kernel, so a Conv with the same NumGroups equals this unit followed by a 1x1 Conv
// with the same kernel bytes. The channels of a group are adjacent then, so NumGroups does not
// change the result.
void Compute(const KernelRasterizerParams& p, const void*, absl::Span<const ConstView> in,
             View out) {
  const Dims &from = in[0].dims, &to = out.dims;
  const int64_t plane = from.h() * from.w(), patch = to.h() * to.w();
  const int64_t places = p.height * p.width;
  // The axes of the copy: N, D and C as one, i, j, h, w.
  const math::Extents extents = {from.n() * from.d() * from.c(), p.height, p.width, to.h(), to.w()};
  const math::Strides image_strides = {plane, from.w(), 1, from.w(), 1};
  const math::Strides patch_strides = {places * patch, p.width * patch, patch, to.w(), 1};
  math::CopyBlock(extents, in[0].data, image_strides, out.data, patch_strides);
}

const UnitKindOf<KernelRasterizerParams>& Kind() {
  static const UnitKindOf<KernelRasterizerParams> kind({
      .type = "KernelRasterizer",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
  });
  return kind;
}

}  // namespace

KernelRows KernelRasterizerRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
