// LayerNormalization: (x - mean) / sqrt(variance + epsilon) * scale + bias over a set of axes, or
// over each of `num_groups` groups of channels with all their positions. Needs A13. Facts:
// validators.json LayerNorm; numerics.json nrm-layer ("group_norm is the same unit with groups > 1;
// gamma and beta fold in"); compiler_texts.json netplist_keys.
#include "kernels/units/layer_normalization.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/affine.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/reshape.h"
#include "math/exact/exact_reduce.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct LayerNormParams {
  std::vector<Axis> axes;  // sorted; with groups: C, H, W
  int64_t groups = 1;
  float epsilon = 1e-5f;
  Affine affine;
};

absl::StatusOr<Dims> Shape(const LayerNormParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const LayerNormParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (in[0].dims.c() % p.groups != 0) {
    return judge.Reject(rule::kLayerNormGroups, in[0].dims.c(), p.groups);
  }
  if (p.groups > 1 && in[0].dims.d() > 1) return judge.Reject(rule::kLayerNormDepth);
  return judge.Accept();
}

bool HasGroups(const LayerNormParams& p) { return p.groups > 1; }

constexpr Field<LayerNormParams> kFields[] = {
    Key<&LayerNormParams::epsilon, AsHalfBits>("Epsilon"),
    Key<&LayerNormParams::axes>("Dimension"),
    // The compiler does not write this key. Its name is from a text of the compiler.
    Key<&LayerNormParams::groups, Plain, HasGroups>("num_groups"),
};

absl::Status Complete(LayerNormParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  if (p.groups < 1) return absl::InvalidArgumentError("num_groups: want at least 1");
  if (p.axes.empty()) p.axes = {Axis::kD, Axis::kC, Axis::kH, Axis::kW};
  // With groups the depth must be 1: its axis is used for the groups.
  if (p.groups > 1) p.axes.erase(std::remove(p.axes.begin(), p.axes.end(), Axis::kD), p.axes.end());
  std::sort(p.axes.begin(), p.axes.end());
  return CompleteAffine(p.affine, in, weights);
}

absl::StatusOr<Prepared> Prepare(const LayerNormParams& p, Bottoms,
                                 absl::Span<const Tensor> weights) {
  return std::make_shared<AffineValues>(p.affine, weights);
}

// With groups the depth is 1, so its axis can hold the groups: N, groups, C / groups, H, W.
math::Extents Grouped(const Dims& d, int64_t groups) {
  return {d.n(), groups, d.c() / groups, d.h(), d.w()};
}

// The operands of a normalization over groups, with the groups as an axis.
struct GroupedForm {
  GroupedForm(const LayerNormParams& p, const void* prepared, const Dims& x) : extents(x.extent) {
    const auto& affine = *static_cast<const AffineValues*>(prepared);
    scale = affine.scale();
    bias = affine.bias();
    if (p.groups == 1) return;
    extents = Grouped(x, p.groups);
    if (p.affine.scale) scale.extents = Grouped(*p.affine.scale, p.groups);
    if (p.affine.bias) bias.extents = Grouped(*p.affine.bias, p.groups);
  }
  math::Extents extents;
  math::NormalizeTerm scale, bias;
};

void Compute(const LayerNormParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const GroupedForm form(p, prepared, in[0].dims);
  math::Normalize(form.extents, MathAxes(p.axes), {.epsilon = p.epsilon}, form.scale, form.bias,
                  in[0].span(), out.span());
}

void Exact(const LayerNormParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const GroupedForm form(p, unit.prepared, in[0].dims);
  math::ExactNormalize(unit.numerics, form.extents, MathAxes(p.axes), p.epsilon, form.scale,
                       form.bias, in[0].span(), PortOf(unit, in[0]), out.span());
}

std::shared_ptr<const void> Permuted(const LayerNormParams& p, const Permutation& order) {
  if (p.groups > 1) return nullptr;  // groups are of channels
  LayerNormParams moved = p;
  moved.axes = Permute(p.axes, order);
  for (std::optional<Dims>* dims : {&moved.affine.scale, &moved.affine.bias}) {
    if (!*dims) continue;
    if (!KeepsOrder(**dims, order)) return nullptr;
    *dims = Permute(**dims, order);
  }
  return std::make_shared<const LayerNormParams>(std::move(moved));
}

absl::Status WriteMil(const LayerNormParams& p, const Unit& unit, MilEmitter& e) {
  // It cannot be one layer_norm with a mul and an add for the scales of the channels, because the
  // unit rounds once.
  if (p.groups > 1) return absl::UnimplementedError("MIL has no normalization over groups");
  std::vector<Axis> axes;
  for (Axis axis : p.axes) {
    if (e.ToMilAxis(axis) >= 0) axes.push_back(axis);
  }
  if (axes.empty()) return absl::UnimplementedError("a normalization over no axes");
  std::vector<MilArgument> arguments = {{"x", {e.In(0)}}, {"axes", {e.Ints(MilAxes(e, axes))}}};
  ANEMONE_RETURN_IF_ERROR(WriteAffine(e, p.affine, unit, axes, arguments));
  arguments.push_back({"epsilon", {e.Half(p.epsilon)}});
  e.Result(e.Emit("layer_norm", std::move(arguments), unit.dims));
  return absl::OkStatus();
}

std::optional<Operand> Compose(const LayerNormParams& p, const Unit& unit, NetworkBuilder& c);

const UnitKindOf<LayerNormParams>& Kind() {
  static const UnitKindOf<LayerNormParams> kind({
      .type = "LayerNormalization",
      .family = &rule::kUnitFamily,
      .permuted = Permuted,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil, .compose = Compose},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact, .reads_port = true},
  });
  return kind;
}

std::optional<Operand> Compose(const LayerNormParams& p, const Unit& unit, NetworkBuilder& c) {
  return ComposedOfPlain(c, Kind(), p, unit);
}

using Sizes = std::vector<int64_t>;

// The dims of a constant that is broadcast to a value of shape `x`; nullopt if its shape does not
// fit.
std::optional<Dims> AlignedDims(const Tensor& constant, const Sizes& x) {
  Sizes shape = constant.dims();
  if (!IsEngineConstant(constant.type()) || shape.size() > x.size()) return std::nullopt;
  shape.insert(shape.begin(), x.size() - shape.size(), 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (shape[i] != x[i] && shape[i] != 1) return std::nullopt;
  }
  // In memory, rank 5 is N, D, C, H, W. A constant along both C and D would have to be transposed.
  if (shape.size() == kMaxRank && shape[1] > 1 && shape[2] > 1) return std::nullopt;
  return PlaceShape(shape);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  if (IsRead(c.view(), node, 1) || IsRead(c.view(), node, 2)) {
    return c.NotLowered("LayerNormalization whose outputs Mean or InvStdDev are used");
  }
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(node.inputs[0]));
  Attributes a(node);
  LayerNorm form{.x = node.inputs[0], .scale = node.inputs[1]};
  if (HasInput(node, 2)) form.bias = node.inputs[2];
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(form.epsilon, a.Float("epsilon", 1e-5f));
  a.Ignore("stash_type");  // the unit always sums in a wide format
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given_axis, shape.size()));
  for (int i = axis; i < static_cast<int>(shape.size()); ++i) form.axes.push_back(i);
  return LowerLayerNorm(form, node.outputs[0], c);
}

// GroupNormalization: the channels are axis 1 in every rank. Scale and bias have one value for
// each.
absl::Status LowerGroups(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  LayerNormParams p{.axes = {Axis::kD, Axis::kC, Axis::kH, Axis::kW}};
  ANEMONE_ASSIGN_OR_RETURN(p.groups, a.Int("num_groups", 1));
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, a.Float("epsilon", 1e-5f));
  a.Ignore("stash_type");
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(node.inputs[0]));
  if (p.groups < 1 || shape.size() < 2) {
    return absl::InvalidArgumentError(
        "GroupNormalization: want num_groups of at least 1 and an input of rank 2 or more; run the "
        "ONNX checker on the model");
  }
  if (p.groups > 1)
    p.axes.erase(p.axes.begin());  // the depth has extent 1 and is used for the groups
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> weights, ChannelAffine(c, node, shape[1], p.affine));
  Operand x = c.In(node.inputs[0]);
  if (shape.size() == 2) {
    x = ReshapeToDims(c, x, MakeDims(shape[0], shape[1], 1, 1));
  }
  x = c.Add(Kind(), p, {x}, std::move(weights));
  x = ReshapeToDims(c, x, PlaceShape(shape));
  return c.Out(node.outputs[0], x);
}

// Layer normalization as exporters before opset 17 write it. Matching begins at the last node:
//   mean = ReduceMean(x); d = Sub(x, mean); v = ReduceMean(Pow(d, 2) or Mul(d, d));
//   y = Div(d, Sqrt(Add(v, epsilon))), then optionally Mul(scale) and Add(bias).
class Decomposed {
 public:
  explicit Decomposed(const GraphView& view) : view_(view) {}

  std::optional<LayerNorm> Find(const Node& anchor) {
    LayerNorm form;
    const Node* node = &anchor;
    if (node->op_type == "Add") node = Peel(*node, "Mul", form.bias);
    if (node != nullptr && node->op_type == "Mul") node = Peel(*node, "Div", form.scale);
    if (node == nullptr || node->op_type != "Div") return std::nullopt;
    if (!FindCore(*node, form)) return std::nullopt;
    return form;
  }

  // Every node found but the anchor.
  const std::vector<NodeId>& nodes() const { return nodes_; }

 private:
  // The node that produces the non-constant input of `node`.
  const Node* Peel(const Node& node, const char* op, ValueId& constant) {
    auto [rest, found] = SplitConstant(view_, node);
    constant = found;
    return found == kNone ? nullptr : Note(view_.OnlyProducer(rest, op));
  }

  bool FindCore(const Node& div, LayerNorm& form) {
    ValueId d = div.inputs[0];
    const Node* root = Note(view_.OnlyProducer(div.inputs[1], "Sqrt"));
    const Node* sum = root == nullptr ? nullptr : Note(view_.OnlyProducer(root->inputs[0], "Add"));
    if (sum == nullptr) return false;
    auto [v, epsilon] = SplitConstant(view_, *sum);
    auto value = epsilon == kNone ? std::nullopt : view_.Scalar(epsilon);
    const Node* variance = value ? Note(view_.OnlyProducer(v, "ReduceMean")) : nullptr;
    if (variance == nullptr || !IsSquareOf(variance->inputs[0], d)) return false;
    const Node* sub = Note(view_.Producer(d, "Sub"));
    const Node* mean =
        sub == nullptr ? nullptr : Note(view_.OnlyProducer(sub->inputs[1], "ReduceMean"));
    if (mean == nullptr || mean->inputs[0] != sub->inputs[0]) return false;
    auto axes = ReducedAxes(view_, *mean);
    if (!axes || axes != ReducedAxes(view_, *variance)) return false;
    if (!KeepsAxes(*mean) || !KeepsAxes(*variance)) return false;
    form.x = sub->inputs[0];
    form.axes = *axes;
    form.epsilon = static_cast<float>(*value);
    return true;
  }

  static bool KeepsAxes(const Node& mean) {
    auto keepdims = Attributes(mean).Int("keepdims", 1);
    return keepdims.ok() && *keepdims == 1;
  }

  bool IsSquareOf(ValueId square, ValueId d) {
    if (const Node* pow = Note(view_.OnlyProducer(square, "Pow"))) {
      return pow->inputs[0] == d && view_.Scalar(pow->inputs[1]) == 2.0;
    }
    const Node* mul = Note(view_.OnlyProducer(square, "Mul"));
    return mul != nullptr && mul->inputs[0] == d && mul->inputs[1] == d;
  }

  const Node* Note(const Node* node) {
    if (node != nullptr) nodes_.push_back(view_.IdOf(*node));
    return node;
  }

  const GraphView& view_;
  std::vector<NodeId> nodes_;
};

bool MatchDecomposed(const GraphView& view, const Node& anchor, Match& match) {
  Decomposed decomposed(view);
  if (!decomposed.Find(anchor)) return false;
  match.nodes = decomposed.nodes();
  return true;
}

absl::Status LowerDecomposed(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  return LowerLayerNorm(*Decomposed(c.view()).Find(node), node.outputs[0], c);
}

// The axes are those of argument 0; the default is the last one.
absl::Status Build(MilContext& c) {
  LayerNormParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, c.Number("epsilon", 1e-5f));
  ANEMONE_ASSIGN_OR_RETURN(Sizes given, c.Ints("axes", {-1}));
  Operand x = c.In(0);
  std::vector<int> axes;
  for (int64_t at : given) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, c.rank(0)));
    axes.push_back(axis);
    p.axes.push_back(ToEngineAxis(c.rank(0), axis));
  }
  std::sort(p.axes.begin(), p.axes.end());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> weights, ReadAffine(c, axes, p.affine));
  x = c.Add(Kind(), p, {x}, std::move(weights));
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"layer_norm", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "LayerNormalization", .lower = Lower},
    {.op = "GroupNormalization", .lower = LowerGroups},
    {.op = "Add", .pattern = "layer-norm", .match = MatchDecomposed, .lower = LowerDecomposed},
    {.op = "Mul", .pattern = "layer-norm", .match = MatchDecomposed, .lower = LowerDecomposed},
    {.op = "Div", .pattern = "layer-norm", .match = MatchDecomposed, .lower = LowerDecomposed},
};

}  // namespace

absl::Status LowerLayerNorm(const LayerNorm& form, ValueId y, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(form.x));
  LayerNormParams p{.axes = {}, .epsilon = form.epsilon};
  for (int i : form.axes) {
    Axis axis = ToEngineAxis(static_cast<int>(shape.size()), i);
    if (shape[i] == 1) continue;  // one element, so there is nothing to normalize
    if (axis == Axis::kN) return c.NotLowered("normalization over the batch axis");
    p.axes.push_back(axis);
  }
  std::sort(p.axes.begin(), p.axes.end());
  std::optional<PlacedConstant> affine[2];
  for (auto [value, placed] :
       {std::pair(form.scale, &affine[0]), std::pair(form.bias, &affine[1])}) {
    if (value == kNone) continue;
    const Tensor* constant = c.view().Constant(value);
    if (constant == nullptr) return c.NotLowered("scale or bias computed at run time");
    std::optional<Dims> dims = AlignedDims(*constant, shape);
    if (!dims) return c.NotLowered("scale or bias whose type or shape does not fit the input");
    *placed = {*constant, *dims};
  }
  std::vector<Tensor> weights =
      SetAffine(p.affine, affine[0] ? &*affine[0] : nullptr, affine[1] ? &*affine[1] : nullptr);
  Operand x = c.In(form.x);
  x = c.Add(Kind(), p, {x}, std::move(weights));
  return c.Out(y, x);
}

std::pair<ValueId, ValueId> SplitConstant(const GraphView& view, const Node& node) {
  for (int i : {0, 1}) {
    if (view.Constant(node.inputs[i]) != nullptr) return {node.inputs[1 - i], node.inputs[i]};
  }
  return {kNone, kNone};
}

std::optional<std::vector<int>> ReducedAxes(const GraphView& view, const Node& reduction) {
  const Value& x = view.graph.values[reduction.inputs[0]];
  const Tensor* axes = HasInput(reduction, 1) ? view.Constant(reduction.inputs[1]) : nullptr;
  auto given = axes == nullptr ? std::nullopt : IntegersOf(*axes);
  if (!given || given->empty() || !x.shape) return std::nullopt;
  std::vector<int> normal;
  for (int64_t axis : *given) {
    auto checked = NormalAxis(axis, x.shape->size());
    if (!checked.ok()) return std::nullopt;
    normal.push_back(*checked);
  }
  std::sort(normal.begin(), normal.end());
  return normal;
}

KernelRows LayerNormalizationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
