// Flatten: puts all elements of an image into one row. Facts: validators.json Flatten;
// hidden_layers.json Flatten; compiler_texts.json for the keys.
#include "base/status_macros.h"
#include "kernels/lowering.h"
#include "kernels/shared/memory_order.h"
#include "math/move/copy.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct FlattenParams {
  MemoryOrder order = MemoryOrder::kNCHW;
};

absl::StatusOr<Dims> Shape(const FlattenParams&, Bottoms in) {
  const Dims& dims = in[0].dims;
  ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount({dims.d(), dims.c(), dims.h(), dims.w()}));
  return MakeDims(dims.n(), 1, 1, count);
}

Verdict Validate(const FlattenParams&, Bottoms, const Target& target, Route route) {
  return Judge(target, route).Requires(rule::kFlattenArch);
}

// A netplist has the order under both keys.
constexpr Field<FlattenParams> kFields[] = {Key<&FlattenParams::order>("FlattenType"),
                                            Key<&FlattenParams::order>("Mode")};

// It copies even in NCHW order. A kind is either always a view or never (UnitRow::is_view), and
// CleanUp drops and merges views, which would lose the extents or the verdict of this unit.
void Compute(const FlattenParams& p, const void*, absl::Span<const ConstView> in, View out) {
  const Dims& dims = in[0].dims;
  math::CopyBlock(dims.extent, in[0].data, math::DenseStrides(dims.extent), out.data,
                  StridesOf(p.order, dims));
}

const UnitKindOf<FlattenParams>& Kind() {
  static const UnitKindOf<FlattenParams> kind({
      .type = "Flatten",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
  });
  return kind;
}

}  // namespace

KernelRows FlattenRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
