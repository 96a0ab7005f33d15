// RMS normalization in plain nodes, x / sqrt(mean(x^2) + epsilon) * scale. There is no unit for it,
// but with sums instead of means it is an L2Normalization,
//
//   x / sqrt(sum(x^2) + n * epsilon) * (sqrt(n) * scale).
//
// That unit does not round squares to fp16 (they would be infinite from |x| = 256 on), and its
// epsilon is n times larger, so it does not underflow in fp16 as soon (numerics.json nrm-rms,
// nrm-l2, nrm-eps).
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/goc.h"
#include "kernels/units/l2_normalization.h"
#include "kernels/units/layer_normalization.h"

namespace anemone {
namespace {

struct RmsNorm {
  ValueId x = kNone;
  ValueId scale = kNone;  // a constant, or kNone if the scale is 1
  std::vector<int> axes;
  double epsilon = 0;
};

class Finder {
 public:
  explicit Finder(const GraphView& view) : view_(view) {}

  // scale * core(x), or the core alone.
  std::optional<RmsNorm> Find(const Node& anchor) {
    if (anchor.op_type == "Mul") {
      auto [rest, scale] = SplitConstant(view_, anchor);
      form_.scale = scale;
      if (scale != kNone) return FindCore(Inner(BehindCast(rest))) ? Found() : std::nullopt;
    }
    return FindCore(&anchor) ? Found() : std::nullopt;
  }

  // All nodes of the pattern except the anchor.
  const std::vector<NodeId>& nodes() const { return nodes_; }

 private:
  std::optional<RmsNorm> Found() const { return form_; }

  const Node* Inner(ValueId value) {
    const Node* node = view_.OnlyProducer(value, "Mul");
    return Note(node != nullptr ? node : view_.OnlyProducer(value, "Div"));
  }

  // x / root, or x * (1 / root) with the operands in either order.
  bool FindCore(const Node* node) {
    if (node == nullptr) return false;
    if (node->op_type == "Div") {
      form_.x = node->inputs[0];
      return FindRoot(node->inputs[1]);
    }
    for (int i : {0, 1}) {
      if (!IsInverse(node->inputs[i])) continue;
      form_.x = node->inputs[1 - i];
      return FindInverse(node->inputs[i]);
    }
    return false;
  }

  bool IsInverse(ValueId value) const {
    for (const char* op : {"Reciprocal", "Div", "Pow"}) {
      if (view_.OnlyProducer(value, op) != nullptr) return true;
    }
    return false;
  }

  // 1 / root, or the power of -1/2 of what is under the root.
  bool FindInverse(ValueId value) {
    if (const Node* inverse = Note(view_.OnlyProducer(value, "Reciprocal"))) {
      return FindRoot(inverse->inputs[0]);
    }
    if (const Node* quotient = Note(view_.OnlyProducer(value, "Div"))) {
      return view_.Scalar(quotient->inputs[0]) == 1.0 && FindRoot(quotient->inputs[1]);
    }
    const Node* power = Note(view_.OnlyProducer(value, "Pow"));
    return power != nullptr && view_.Scalar(power->inputs[1]) == -0.5 && FindSum(power->inputs[0]);
  }

  bool FindRoot(ValueId value) {
    const Node* root = Note(view_.OnlyProducer(value, "Sqrt"));
    return root != nullptr && FindSum(root->inputs[0]);
  }

  // mean(x^2) + epsilon.
  bool FindSum(ValueId value) {
    const Node* sum = Note(view_.OnlyProducer(value, "Add"));
    if (sum == nullptr) return false;
    auto [rest, constant] = SplitConstant(view_, *sum);
    auto epsilon = constant == kNone ? std::nullopt : view_.Scalar(constant);
    const Node* mean = epsilon ? Note(view_.OnlyProducer(rest, "ReduceMean")) : nullptr;
    if (mean == nullptr || !KeepsAxes(*mean) || !IsSquareOfX(mean->inputs[0])) return false;
    auto axes = ReducedAxes(view_, *mean);
    if (!axes || *epsilon < 0) return false;
    form_.axes = *axes;
    form_.epsilon = *epsilon;
    return true;
  }

  static bool KeepsAxes(const Node& mean) {
    auto keepdims = Attributes(mean).Int("keepdims", 1);
    return keepdims.ok() && *keepdims == 1;
  }

  bool IsSquareOfX(ValueId value) {
    if (const Node* pow = Note(view_.OnlyProducer(value, "Pow"))) {
      return view_.Scalar(pow->inputs[1]) == 2.0 && IsX(pow->inputs[0]);
    }
    const Node* mul = Note(view_.OnlyProducer(value, "Mul"));
    return mul != nullptr && mul->inputs[0] == mul->inputs[1] && IsX(mul->inputs[0]);
  }

  // x, or x cast to a wider float type only for computing the squares.
  bool IsX(ValueId value) { return value == form_.x || BehindCast(value) == form_.x; }

  // Skips a cast between float types, which has no effect inside the engine.
  ValueId BehindCast(ValueId value) {
    const Node* cast = view_.OnlyProducer(value, "Cast");
    if (cast == nullptr || !IsFloat(cast->inputs[0]) || !IsFloat(value)) return value;
    return Note(cast)->inputs[0];
  }

  bool IsFloat(ValueId value) const { return IsFloating(view_.graph.values[value].type); }

  const Node* Note(const Node* node) {
    if (node != nullptr) nodes_.push_back(view_.IdOf(*node));
    return node;
  }

  const GraphView& view_;
  RmsNorm form_;
  std::vector<NodeId> nodes_;
};

bool IsRmsNorm(const GraphView& view, const Node& anchor, Match& match) {
  Finder finder(view);
  if (!finder.Find(anchor)) return false;
  match.nodes = finder.nodes();
  return true;
}

using Sizes = std::vector<int64_t>;

// x times `gain` times the scale. The scale must broadcast to the shape of x without enlarging it.
Operand Rescaled(LowerContext& c, const Operand& x, const Sizes& shape, ValueId scale,
                 double gain) {
  if (scale == kNone) return ScaleAndShift(c, x, gain, 0);
  const Tensor& tensor = *c.view().Constant(scale);
  const Sizes& dims = tensor.dims();
  bool fits = IsEngineConstant(tensor.type()) && dims.size() <= shape.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) {
    fits = dims[i] == 1 || dims[i] == shape[shape.size() - dims.size() + i];
  }
  if (!fits) {
    return c.NotLowered("RMS normalization with a scale that cannot be broadcast to the input");
  }
  if (tensor.elements() == 1) return ScaleAndShift(c, x, gain * *c.view().Scalar(scale), 0);
  std::vector<float> values = RoundedFloats(tensor);
  for (float& v : values) v *= static_cast<float>(gain);
  Operand factor = AlignedConstant(c, Tensor::Floats(dims, values), shape);
  return Combined(c, ElementWiseType::kMult, x, factor);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  // MIL's l2_norm always normalizes over all axes except the batch (numerics.json nrm-l2).
  if (c.route() == Route::kMil) return c.NotLowered("RMS normalization as one unit on route mil");
  const Node& node = c.anchor(match);
  const RmsNorm form = *Finder(c.view()).Find(node);
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(form.x));
  std::vector<Axis> axes;
  double count = 1;
  for (int i : form.axes) {
    if (shape[i] == 1) continue;
    axes.push_back(ToEngineAxis(static_cast<int>(shape.size()), i));
    if (axes.back() == Axis::kN) {
      return c.NotLowered("RMS normalization over the batch axis, as one unit");
    }
    count *= static_cast<double>(shape[i]);
  }
  if (axes.empty()) return c.NotLowered("RMS normalization over axes of extent 1, as one unit");
  Operand x = c.In(form.x);
  x = L2Normalized(c, x, std::move(axes), static_cast<float>(form.epsilon * count));
  x = Rescaled(c, x, shape, form.scale, std::sqrt(count));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Mul", .pattern = "rms-norm", .match = IsRmsNorm, .lower = Lower},
    {.op = "Div", .pattern = "rms-norm", .match = IsRmsNorm, .lower = Lower},
};

}  // namespace

KernelRows RmsNormalizationRows() { return {{}, kLowerings}; }

}  // namespace anemone
