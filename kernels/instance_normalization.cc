// InstanceNormalization: each channel of each image over its positions. Native from A13. Facts:
// validators.json InstanceNorm; numerics.json nrm-instance; no netplist form is known.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/layer_normalization.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// "axes are spatial only": those of positions.
constexpr Axis kSpatial[] = {Axis::kD, Axis::kH, Axis::kW};

struct InstanceNormParams {
  float epsilon = 1e-5f;
  Affine affine;  // one value per channel
};

absl::StatusOr<Dims> Shape(const InstanceNormParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const InstanceNormParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kInstanceNorm)) return judge.Reject(rule::kInstanceNormArch);
  return judge.Accept();
}

constexpr Field<InstanceNormParams> kFields[] = {
    {"Epsilon", [](const InstanceNormParams& p) { return absl::StrCat(p.epsilon); }},
    {"Dimension", [](const InstanceNormParams&) { return ShowAxes(kSpatial); }},
};

absl::StatusOr<Prepared> Prepare(const InstanceNormParams& p, Bottoms,
                                 absl::Span<const Tensor> weights) {
  return std::make_shared<AffineValues>(p.affine, weights);
}

void Compute(const InstanceNormParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const auto& affine = *static_cast<const AffineValues*>(prepared);
  math::Normalize(in[0].dims.extent, MathAxes(kSpatial), {.epsilon = p.epsilon}, affine.scale(),
                  affine.bias(), in[0].span(), out.span());
}

const UnitKindOf<InstanceNormParams>& Kind() {
  static const UnitKindOf<InstanceNormParams>& kind =
      *new UnitKindOf<InstanceNormParams>({.type = "InstanceNormalization",
                                           .shape = Shape,
                                           .validate = Validate,
                                           .fields = kFields,
                                           .prepare = Prepare,
                                           .compute = Compute});
  return kind;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  InstanceNormParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, a.Float("epsilon", 1e-5f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  if (shape.size() < 3) return c.NotLowered("instance normalization below rank 3");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> weights, ChannelWeights(c, node, shape[1]));
  p.affine = {MakeDims(1, shape[1], 1, 1), MakeDims(1, shape[1], 1, 1)};
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), p, {x}, std::move(weights)));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "InstanceNormalization", .lower = Lower}};

}  // namespace

KernelRows InstanceNormalizationRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
