// KernelRasterizer: patches of an image side by side. Facts: hidden_layers.json additional_units.
// No validator, no shape rule and no formula of it is published: the extents are taken to stay, and
// it is judged but not run.
#include <algorithm>

#include "kernels/lowering.h"

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
  int64_t channels = 0;  // of the output; 0: the input's
};

absl::Status Complete(KernelRasterizerParams& p, Bottoms in, absl::Span<const Tensor>) {
  if (p.channels == 0) p.channels = in[0].dims.c();
  return absl::OkStatus();
}

absl::StatusOr<Dims> Shape(const KernelRasterizerParams& p, Bottoms in) {
  if (std::min({p.width, p.height, p.groups, p.channels}) < 1) {
    return absl::InvalidArgumentError("want a kernel, groups and channels of 1 or more");
  }
  Dims out = in[0].dims;
  out[Axis::kC] = p.channels;
  return out;
}

constexpr Field<KernelRasterizerParams> kFields[] = {
    Required<&KernelRasterizerParams::width>("KernelWidth"),
    Required<&KernelRasterizerParams::height>("KernelHeight"),
    Key<&KernelRasterizerParams::groups>("NumGroups"),
    Required<&KernelRasterizerParams::mode>("RasterizerMode"),
    Alias<&KernelRasterizerParams::channels>("OutputChannels"),
};

const UnitKindOf<KernelRasterizerParams>& Kind() {
  static const UnitKindOf<KernelRasterizerParams>& kind = *new UnitKindOf<KernelRasterizerParams>(
      {.type = "KernelRasterizer", .complete = Complete, .shape = Shape, .fields = kFields});
  return kind;
}

}  // namespace

KernelRows KernelRasterizerRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
