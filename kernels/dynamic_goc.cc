// DynamicGOC: gain and offset that are computed at run time, x * scale + bias or x + bias. Facts:
// validators.json DynamicGOC; hidden_layers.json additional_units.
#include "kernels/lowering.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct DynamicGocParams {
  bool bias_only = false;
};

absl::StatusOr<Dims> Shape(const DynamicGocParams& p, Bottoms in) {
  if (in.size() != (p.bias_only ? 2 : 3)) {
    return absl::InvalidArgumentError("want x and bias with BiasOnly, else x, scale and bias");
  }
  for (const Bottom& bottom : in) {
    for (int i = 0; i < kAxisCount; ++i) {
      int64_t extent = bottom.dims.extent[i];
      if (extent != 1 && extent != in[0].dims.extent[i]) {
        return absl::InvalidArgumentError("scale and bias: want extents of 1 or those of x");
      }
    }
  }
  return in[0].dims;
}

Verdict Validate(const DynamicGocParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return judge.Has(Cap::kDynamicGoc) ? judge.Accept() : judge.Reject(rule::kDynamicGocArch);
}

bool IsBiasOnly(const DynamicGocParams& p) { return p.bias_only; }

constexpr Field<DynamicGocParams> kFields[] = {
    Key<&DynamicGocParams::bias_only, Plain, IsBiasOnly>("BiasOnly")};

const UnitKindOf<DynamicGocParams>& Kind() {
  static const UnitKindOf<DynamicGocParams>& kind =
      *new UnitKindOf<DynamicGocParams>({.type = "DynamicGOC",
                                         .bottoms = {2, 3},
                                         .shape = Shape,
                                         .validate = Validate,
                                         .fields = kFields});
  return kind;
}

}  // namespace

KernelRows DynamicGocRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
