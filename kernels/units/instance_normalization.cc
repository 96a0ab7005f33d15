// InstanceNormalization: normalizes each channel of each image over its positions. Needs A13.
// Facts: validators.json InstanceNorm; numerics.json nrm-instance; compiler_texts.json
// netplist_keys.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/shared/affine.h"
#include "math/exact/exact_reduce.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct InstanceNormParams {
  float epsilon = 1e-5f;
  std::vector<Axis> axes = {Axis::kD, Axis::kH, Axis::kW};
  Affine affine;  // one value per channel
};

absl::StatusOr<Dims> Shape(const InstanceNormParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const InstanceNormParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kInstanceNorm)) return judge.Reject(rule::kInstanceNormArch);
  for (Axis axis : p.axes) {
    if (axis == Axis::kN || axis == Axis::kC) return judge.Reject(rule::kInstanceNormAxes);
    if (std::count(p.axes.begin(), p.axes.end(), axis) > 1) {
      return judge.Reject(rule::kInstanceNormDuplicate, AxisName(axis));
    }
  }
  return judge.Accept();
}

constexpr Field<InstanceNormParams> kFields[] = {
    Key<&InstanceNormParams::epsilon, AsHalfBits>("Epsilon"),
    Key<&InstanceNormParams::axes>("Dimension"),
};

absl::Status Complete(InstanceNormParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  return CompleteAffine(p.affine, in, weights);
}

absl::StatusOr<Prepared> Prepare(const InstanceNormParams& p, Bottoms,
                                 absl::Span<const Tensor> weights) {
  return std::make_shared<AffineValues>(p.affine, weights);
}

void Compute(const InstanceNormParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const auto& affine = *static_cast<const AffineValues*>(prepared);
  math::Normalize(in[0].dims.extent, MathAxes(p.axes), {.epsilon = p.epsilon}, affine.scale(),
                  affine.bias(), in[0].span(), out.span());
}

void Exact(const InstanceNormParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const auto& affine = *static_cast<const AffineValues*>(unit.prepared);
  math::ExactNormalize(unit.numerics, in[0].dims.extent, MathAxes(p.axes), p.epsilon,
                       affine.scale(), affine.bias(), in[0].span(), /*port=*/{}, out.span());
}

absl::Status WriteMil(const InstanceNormParams& p, const Unit& unit, MilEmitter& e) {
  for (Axis axis : {Axis::kD, Axis::kH, Axis::kW}) {
    if (unit.dims[axis] > 1 && std::find(p.axes.begin(), p.axes.end(), axis) == p.axes.end()) {
      return absl::UnimplementedError("MIL's instance_norm always normalizes over all positions");
    }
  }
  std::vector<MilArgument> arguments = {{"x", {e.In(0)}}};
  ANEMONE_RETURN_IF_ERROR(WriteAffine(e, p.affine, unit, {Axis::kC}, arguments));
  arguments.push_back({"epsilon", {e.Half(p.epsilon)}});
  e.Result(e.Emit("instance_norm", std::move(arguments), unit.dims));
  return absl::OkStatus();
}

std::optional<Operand> Compose(const InstanceNormParams& p, const Unit& unit, NetworkBuilder& c);

const UnitKindOf<InstanceNormParams>& Kind() {
  static const UnitKindOf<InstanceNormParams> kind({
      .type = "InstanceNormalization",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil, .compose = Compose},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

std::optional<Operand> Compose(const InstanceNormParams& p, const Unit& unit, NetworkBuilder& c) {
  return ComposedOfPlain(c, Kind(), p, unit);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  InstanceNormParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, a.Float("epsilon", 1e-5f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  if (shape.size() < 3) return c.NotLowered("InstanceNormalization of a tensor of rank below 3");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> weights, ChannelAffine(c, node, shape[1], p.affine));
  Operand x = c.In(node.inputs[0]);
  x = c.Add(Kind(), p, {x}, std::move(weights));
  return c.Out(node.outputs[0], x);
}

absl::Status Build(MilContext& c) {
  InstanceNormParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, c.Number("epsilon", 1e-5f));
  Operand x = c.In(0);
  if (c.rank(0) < 3) return absl::InvalidArgumentError("instance_norm: want rank 3 or more");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> weights, ReadAffine(c, {1}, p.affine));
  x = c.Add(Kind(), p, {x}, std::move(weights));
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"instance_norm", Build}};

constexpr Lowering kLowerings[] = {{.op = "InstanceNormalization", .lower = Lower}};

}  // namespace

KernelRows InstanceNormalizationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
