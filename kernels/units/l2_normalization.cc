// L2Normalization: x / sqrt(sum of squares over a set of axes). Every target has it. Nodes that
// compute the same are lowered to it. Facts: validators.json L2Norm; numerics.json nrm-l2;
// compiler_texts.json netplist_keys.
#include "kernels/units/l2_normalization.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/affine.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/layer_normalization.h"
#include "kernels/units/reduction.h"
#include "kernels/units/reshape.h"
#include "math/exact/exact_reduce.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct L2NormParams {
  std::vector<Axis> axes;
  float epsilon = 0;
};

absl::StatusOr<Dims> Shape(const L2NormParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const L2NormParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  for (Axis axis : p.axes) {
    if (axis == Axis::kN) return judge.Reject(rule::kL2NormBatch);
  }
  return judge.Accept();
}

constexpr Field<L2NormParams> kFields[] = {
    Key<&L2NormParams::epsilon, AsHalfBits>("Epsilon"),
    Required<&L2NormParams::axes>("Dimension"),
};

void Compute(const L2NormParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::L2Normalize(in[0].dims.extent, MathAxes(p.axes), p.epsilon, in[0].span(), out.span());
}

void Exact(const L2NormParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  math::ExactL2Normalize(unit.numerics, in[0].dims.extent, MathAxes(p.axes), p.epsilon,
                         in[0].span(), out.span());
}

std::shared_ptr<const void> Permuted(const L2NormParams& p, const Permutation& order) {
  return std::make_shared<const L2NormParams>(L2NormParams{Permute(p.axes, order), p.epsilon});
}

// MIL's operation is over the last three of four axes (numerics.json nrm-l2).
absl::Status WriteMil(const L2NormParams& p, const Unit& unit, MilEmitter& e) {
  const std::set<Axis> axes(p.axes.begin(), p.axes.end());
  if (axes != std::set<Axis>{Axis::kC, Axis::kH, Axis::kW} || unit.dims.d() != 1) {
    return absl::UnimplementedError("MIL's l2_norm is over all axes but the batch");
  }
  const Dims& d = unit.dims;
  const std::vector<int64_t> shape = {d.n(), d.c(), d.h(), d.w()}, own = e.ShapeOf(d);
  std::string x = e.In(0);
  if (own != shape) x = e.Emit("reshape", {{"x", {x}}, {"shape", {e.Ints(shape)}}}, shape);
  x = e.Emit("l2_norm", {{"x", {x}}, {"epsilon", {e.Half(p.epsilon)}}}, shape);
  if (own != shape) x = e.Emit("reshape", {{"x", {x}}, {"shape", {e.Ints(own)}}}, own);
  e.Result(x);
  return absl::OkStatus();
}

const UnitKindOf<L2NormParams>& Kind() {
  static const UnitKindOf<L2NormParams> kind({
      .type = "L2Normalization",
      .permuted = Permuted,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// The operation of MIL has no axes: it is over all but the batch.
constexpr char kNotOnMil[] = "L2 normalization over some axes as one unit on route mil";

absl::Status Lower(const Match& match, LowerContext& c) {
  if (c.route() == Route::kMil) return c.NotLowered(kNotOnMil);
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t p, a.Int("p", 2));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (p != 2) return c.NotLowered(absl::StrCat("LpNormalization with p = ", p, " as one unit"));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given_axis, rank));
  Operand x = c.In(node.inputs[0]);
  x = c.Add(Kind(), L2NormParams{{ToEngineAxis(rank, axis)}}, {x});
  return c.Out(node.outputs[0], x);
}

// p = 1: x / sum(|x|). p = 2: x is first divided by the largest |x|, so that the squares do not
// overflow. If all elements are 0, the result is 0, as in ONNX Runtime.
absl::Status LowerInParts(const Match& match, LowerContext& c) {
  constexpr float kSmallest = 1.0f / (1 << 14);  // whose inverse is finite
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t p, a.Int("p", 2));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (p != 1 && p != 2) return c.NotLowered(absl::StrCat("LpNormalization with p = ", p));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(given_axis, rank));
  const Axis axis = ToEngineAxis(rank, at);
  Operand x = c.In(node.inputs[0]);
  Operand scale = Absolute(c, x);
  scale = Reduced(c, scale, ReduceType::kMax, axis);
  scale = Combined(c, ElementWiseType::kMax, scale, ScalarConstant(c, kSmallest));
  x = Combined(c, ElementWiseType::kDiv, x, scale);
  Operand norm;
  if (p == 1) {
    norm = Absolute(c, x);
  } else {
    norm = Combined(c, ElementWiseType::kMult, x, x);
  }
  norm = Reduced(c, norm, ReduceType::kSum, axis);
  norm = Combined(c, ElementWiseType::kMax, norm, ScalarConstant(c, kSmallest));
  if (p == 2) {
    norm = Activated(c, NeuronType::kSqrt, norm);
  }
  x = Combined(c, ElementWiseType::kDiv, x, norm);
  return c.Out(node.outputs[0], x);
}

// x / norm(x), or x / max(norm(x), a tiny number) as exported from PyTorch's F.normalize.
struct Division {
  ValueId x = kNone;
  std::vector<int> axes;
  double epsilon = 0;  // added under the root
};

// A norm below this comes from numbers that fp16 represents with only a few bits, or not at all.
constexpr double kTiny = 1e-5;

class Finder {
 public:
  explicit Finder(const GraphView& view) : view_(view) {}

  std::optional<Division> Find(const Node& division) {
    form_.x = division.inputs[0];
    const Value& x = view_.graph.values[form_.x];
    const Value& y = view_.graph.values[division.outputs[0]];
    if (!x.is_static() || !y.is_static() || x.dims() != y.dims()) return std::nullopt;
    ValueId norm = division.inputs[1];
    if (const Node* expand = Note(view_.OnlyProducer(norm, "Expand"))) norm = expand->inputs[0];
    norm = BehindFloor(norm);
    return IsNorm(norm) ? std::optional(form_) : std::nullopt;
  }

  // Every node found except the anchor.
  const std::vector<NodeId>& nodes() const { return nodes_; }

 private:
  ValueId BehindFloor(ValueId value) {
    for (const char* op : {"Clip", "Max"}) {
      const Node* node = view_.OnlyProducer(value, op);
      if (node == nullptr || node->inputs.size() < 2 || HasInput(*node, 2)) continue;
      for (int i = 0; i < (node->op_type == "Max" ? 2 : 1); ++i) {
        const ValueId floor = node->inputs[1 - i];
        auto number = floor == kNone ? std::nullopt : view_.Scalar(floor);
        if (number && *number >= 0 && *number <= kTiny) return Note(node)->inputs[i];
      }
    }
    return value;
  }

  bool IsNorm(ValueId value) {
    if (const Node* norm = Note(view_.OnlyProducer(value, "ReduceL2"))) return IsOverX(*norm);
    const Node* root = Note(view_.OnlyProducer(value, "Sqrt"));
    if (root == nullptr) return false;
    ValueId sum = root->inputs[0];
    if (const Node* add = Note(view_.OnlyProducer(sum, "Add"))) {
      auto [rest, constant] = SplitConstant(view_, *add);
      auto epsilon = constant == kNone ? std::nullopt : view_.Scalar(constant);
      if (!epsilon || *epsilon < 0) return false;
      form_.epsilon = *epsilon;
      sum = rest;
    }
    if (const Node* squares = Note(view_.OnlyProducer(sum, "ReduceSumSquare"))) {
      return IsOverX(*squares);
    }
    const Node* reduction = Note(view_.OnlyProducer(sum, "ReduceSum"));
    return reduction != nullptr && IsSquare(reduction->inputs[0]) && HasAxes(*reduction);
  }

  bool IsSquare(ValueId value) {
    if (const Node* power = Note(view_.OnlyProducer(value, "Pow"))) {
      return power->inputs[0] == form_.x && view_.Scalar(power->inputs[1]) == 2.0;
    }
    const Node* product = Note(view_.OnlyProducer(value, "Mul"));
    return product != nullptr && product->inputs[0] == form_.x && product->inputs[1] == form_.x;
  }

  bool IsOverX(const Node& reduction) {
    return reduction.inputs[0] == form_.x && HasAxes(reduction);
  }

  bool HasAxes(const Node& reduction) {
    auto keepdims = Attributes(reduction).Int("keepdims", 1);
    auto axes = ReducedAxes(view_, reduction);
    if (!keepdims.ok() || *keepdims != 1 || !axes) return false;
    form_.axes = *std::move(axes);
    return true;
  }

  const Node* Note(const Node* node) {
    if (node != nullptr) nodes_.push_back(view_.IdOf(*node));
    return node;
  }

  const GraphView& view_;
  Division form_;
  std::vector<NodeId> nodes_;
};

bool IsDivision(const GraphView& view, const Node& anchor, Match& match) {
  Finder finder(view);
  if (!finder.Find(anchor)) return false;
  match.nodes = finder.nodes();
  return true;
}

absl::Status LowerDivision(const Match& match, LowerContext& c) {
  if (c.route() == Route::kMil) return c.NotLowered(kNotOnMil);
  const Node& node = c.anchor(match);
  Division form = *Finder(c.view()).Find(node);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(form.x));
  L2NormParams p{.epsilon = static_cast<float>(form.epsilon)};
  for (int axis : form.axes) p.axes.push_back(ToEngineAxis(static_cast<int>(shape.size()), axis));
  Operand x = c.In(form.x);
  x = c.Add(Kind(), std::move(p), {x});
  return c.Out(node.outputs[0], x);
}

// Over the given axes; by default the last three.
absl::Status Build(MilContext& c) {
  L2NormParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, c.Number("epsilon", 1e-6f));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Ints("axes", {-3, -2, -1}));
  Operand x = c.In(0);
  // A value of rank 3 has no batch axis: its axes are C, H and W.
  std::vector<int64_t> shape = c.ShapeOf(0);
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  const int rank = static_cast<int>(shape.size());
  for (int64_t at : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, c.rank(0)));
    p.axes.push_back(ToEngineAxis(rank, rank - c.rank(0) + axis));
  }
  x = ReshapeToDims(c, x, PlaceShape(shape));
  x = c.Add(Kind(), p, {x});
  x = ReshapeToDims(c, x, PlaceShape(c.ShapeOf(0)));
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"l2_norm", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "LpNormalization", .lower = Lower},
    {.op = "LpNormalization", .rewritten = true, .lower = LowerInParts},
    {.op = "Div", .pattern = "l2-norm", .match = IsDivision, .lower = LowerDivision},
};

}  // namespace

Operand L2Normalized(NetworkBuilder& c, const Operand& x, std::vector<Axis> axes, float epsilon) {
  return c.Add(Kind(), L2NormParams{std::move(axes), epsilon}, {x});
}

KernelRows L2NormalizationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
