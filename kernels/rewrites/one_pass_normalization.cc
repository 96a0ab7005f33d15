// Recognizes layer normalization that computes the variance as mean(x^2) - mean(x)^2, as in Flax,
// and lowers it to the LayerNormalization unit. In fp16, the difference loses all precision if the
// mean is large compared with the deviation, and the sum of squares overflows early
// (numerics_notes.md section 5). The unit does not have these problems, so the reason for this
// pattern is accuracy, not speed.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/units/layer_normalization.h"

namespace anemone {
namespace {

// The pattern is
//   mean = Mul(ReduceSum(x), 1/n)
//   var = Max(Sub(Mul(ReduceSum(Mul(x, x)), 1/n), Mul(mean, mean)), 0)
//   y = Add(Mul(Sub(x, mean), Mul(Reciprocal(Sqrt(Add(var, epsilon))), scale)), bias)
// with Reshapes if the sums do not keep their axes. Scale, bias and Max are optional.
class Finder {
 public:
  explicit Finder(const GraphView& view) : view_(view) {}

  std::optional<LayerNorm> Find(const Node& anchor) {
    const Node* product = &anchor;
    if (anchor.op_type == "Add") {
      auto [rest, bias] = SplitConstant(view_, anchor);
      form_.bias = bias;
      product = bias == kNone ? nullptr : Note(view_.OnlyProducer(rest, "Mul"));
    }
    if (product == nullptr) return std::nullopt;
    for (int i : {0, 1}) {
      const Node* centered = view_.OnlyProducer(product->inputs[i], "Sub");
      if (centered == nullptr) continue;
      Note(centered);
      form_.x = centered->inputs[0];
      if (FindDeviation(product->inputs[1 - i]) && IsMeanOfX(centered->inputs[1])) return form_;
      return std::nullopt;
    }
    return std::nullopt;
  }

  const std::vector<NodeId>& nodes() const { return nodes_; }

 private:
  // 1 / sqrt(var + epsilon), times the scale.
  bool FindDeviation(ValueId value) {
    if (const Node* scaled = view_.OnlyProducer(value, "Mul")) {
      auto [rest, scale] = SplitConstant(view_, *Note(scaled));
      form_.scale = scale;
      value = rest;
    }
    const Node* inverse = Note(view_.OnlyProducer(value, "Reciprocal"));
    const Node* root =
        inverse == nullptr ? nullptr : Note(view_.OnlyProducer(inverse->inputs[0], "Sqrt"));
    const Node* sum = root == nullptr ? nullptr : Note(view_.OnlyProducer(root->inputs[0], "Add"));
    if (sum == nullptr) return false;
    auto [variance, epsilon] = SplitConstant(view_, *sum);
    auto value_of_epsilon = epsilon == kNone ? std::nullopt : view_.Scalar(epsilon);
    if (!value_of_epsilon) return false;
    form_.epsilon = static_cast<float>(*value_of_epsilon);
    return FindVariance(variance) && IsLaidOutForX(variance);
  }

  bool FindVariance(ValueId value) {
    value = ThroughViews(value);
    if (const Node* max = view_.OnlyProducer(value, "Max")) {
      auto [rest, floor] = SplitConstant(view_, *Note(max));
      if (floor == kNone || max->inputs.size() != 2 || view_.Scalar(floor) != 0.0) return false;
      value = rest;
    }
    const Node* difference = Note(view_.OnlyProducer(value, "Sub"));
    if (difference == nullptr) return false;
    const Node* mean_of_squares = FindMean(difference->inputs[0]);
    const Node* square_of_mean = Note(view_.OnlyProducer(difference->inputs[1], "Mul"));
    if (mean_of_squares == nullptr || square_of_mean == nullptr) return false;
    const Node* square = Note(view_.OnlyProducer(mean_of_squares->inputs[0], "Mul"));
    mean_ = square_of_mean->inputs[0];
    return square != nullptr && square->inputs[0] == form_.x && square->inputs[1] == form_.x &&
           square_of_mean->inputs[1] == mean_;
  }

  // The mean that is subtracted from x must be the one that is squared in the variance.
  bool IsMeanOfX(ValueId value) {
    const Node* sum = ThroughViews(value) == mean_ ? FindMean(mean_) : nullptr;
    return sum != nullptr && sum->inputs[0] == form_.x && IsLaidOutForX(value);
  }

  // `value` has the shape of x with extent 1 along the normalized axes.
  bool IsLaidOutForX(ValueId value) const {
    const Value& x = view_.graph.values[form_.x];
    const Value& read = view_.graph.values[value];
    if (!x.is_static() || !read.is_static()) return false;
    std::vector<int64_t> want = x.dims();
    for (int axis : form_.axes) want[axis] = 1;
    return read.dims() == want;
  }

  // The ReduceMean, or the ReduceSum that is divided by its number of elements. All means of the
  // pattern must have the same axes.
  const Node* FindMean(ValueId value) {
    const Node* reduction = view_.Producer(value, "ReduceMean");
    if (reduction == nullptr) {
      const Node* scaled = Note(view_.Producer(value, "Mul"));
      if (scaled == nullptr) return nullptr;
      auto [sum, factor] = SplitConstant(view_, *scaled);
      reduction = factor == kNone ? nullptr : view_.OnlyProducer(sum, "ReduceSum");
      if (reduction == nullptr || !IsInverseOfCount(*reduction, factor)) return nullptr;
    }
    auto axes = ReducedAxes(view_, *reduction);
    if (!axes || (!form_.axes.empty() && form_.axes != *axes)) return nullptr;
    form_.axes = *axes;
    return Note(reduction);
  }

  bool IsInverseOfCount(const Node& sum, ValueId factor) const {
    const Value& x = view_.graph.values[sum.inputs[0]];
    auto axes = ReducedAxes(view_, sum);
    auto given = view_.Scalar(factor);
    if (!axes || !given || !x.is_static()) return false;
    double count = 1;
    for (int axis : *axes) count *= static_cast<double>(x.dims()[axis]);
    return std::abs(*given * count - 1) < 1e-4;
  }

  // Skips a Reshape or Unsqueeze, which keeps the elements and their order.
  ValueId ThroughViews(ValueId value) {
    for (const char* op : {"Reshape", "Unsqueeze"}) {
      if (const Node* node = Note(view_.OnlyProducer(value, op))) return node->inputs[0];
    }
    return value;
  }

  const Node* Note(const Node* node) {
    if (node == nullptr) return nullptr;
    NodeId id = view_.IdOf(*node);
    if (std::find(nodes_.begin(), nodes_.end(), id) == nodes_.end()) nodes_.push_back(id);
    return node;
  }

  const GraphView& view_;
  LayerNorm form_;
  ValueId mean_ = kNone;
  std::vector<NodeId> nodes_;
};

bool MatchOnePass(const GraphView& view, const Node& anchor, Match& match) {
  Finder finder(view);
  if (!finder.Find(anchor)) return false;
  match.nodes = finder.nodes();
  return true;
}

absl::Status LowerOnePass(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  return LowerLayerNorm(*Finder(c.view()).Find(node), node.outputs[0], c);
}

constexpr Lowering kLowerings[] = {
    {.op = "Add", .pattern = "one-pass-norm", .match = MatchOnePass, .lower = LowerOnePass},
    {.op = "Mul", .pattern = "one-pass-norm", .match = MatchOnePass, .lower = LowerOnePass},
};

}  // namespace

KernelRows OnePassNormalizationRows() { return {{}, kLowerings}; }

}  // namespace anemone
