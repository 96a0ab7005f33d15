// Unflatten: turns a row into an image, the reverse of Flatten. The code generator of the M1
// refuses every form. Facts: validators.json Unflatten; compiler_texts.json for the keys.
#include <algorithm>

#include "base/status_macros.h"
#include "kernels/lowering.h"
#include "kernels/shared/memory_order.h"
#include "math/move/copy.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct UnflattenParams {
  MemoryOrder order = MemoryOrder::kNCHW;
  int64_t width = 1, height = 1, channels = 1;
};

absl::StatusOr<Dims> Shape(const UnflattenParams& p, Bottoms in) {
  const Dims& dims = in[0].dims;
  if (std::min({p.width, p.height, p.channels}) < 1) {
    return absl::InvalidArgumentError("want destination extents of 1 or more");
  }
  ANEMONE_ASSIGN_OR_RETURN(int64_t from, ElementCount({dims.d(), dims.c(), dims.h(), dims.w()}));
  ANEMONE_ASSIGN_OR_RETURN(int64_t to, ElementCount({p.channels, p.height, p.width}));
  if (from != to) return absl::InvalidArgumentError("the element counts differ");
  return MakeDims(dims.n(), p.channels, p.height, p.width);
}

Verdict Codegen(const UnflattenParams&, Bottoms, const Target& target, Route route) {
  return Judge(target, route).Requires(rule::kUnflattenFamily);
}

constexpr Field<UnflattenParams> kFields[] = {
    Key<&UnflattenParams::order>("Mode"),
    Required<&UnflattenParams::width>("DestinationWidth"),
    Required<&UnflattenParams::height>("DestinationHeight"),
    Required<&UnflattenParams::channels>("DestinationChannels"),
};

// An input that is not a row is read as one, in memory order. It copies, and is not a view, for the
// same reason as Flatten (flatten.cc).
void Compute(const UnflattenParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::CopyBlock(out.dims.extent, in[0].data, StridesOf(p.order, out.dims), out.data,
                  math::DenseStrides(out.dims.extent));
}

const UnitKindOf<UnflattenParams>& Kind() {
  static const UnitKindOf<UnflattenParams> kind({
      .type = "Unflatten",
      .bottoms = {1, 1, &rule::kUnflattenInputs},
      .judge = {.shape = Shape, .codegen = Codegen},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
  });
  return kind;
}

}  // namespace

KernelRows UnflattenRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
