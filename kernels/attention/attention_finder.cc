// The search for attention (kernels/attention/attention.h). It goes from the anchor towards the
// inputs, and each walk visits a bounded number of nodes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_mask.h"
#include "kernels/attention/attention_nodes.h"
#include "kernels/rewrites/einsum.h"

namespace anemone {
namespace {

constexpr int kMostSteps = 12;    // of one walk
constexpr size_t kMostMasks = 3;  // each Add is tried with both operands as the mask

// A score this low has no weight next to a score of usual size: exp(-9900) is 0 even in float64.
constexpr double kNoWeight = -9.9e3;
// Models clamp scores at the lowest finite number of fp16 or of a wider type. A clamp at this value
// or below changes no score.
constexpr double kFloor = -6e4;

// The labels that are not in `others`.
std::string Without(const std::string& labels, const std::string& others) {
  std::string left;
  for (char label : labels) {
    if (others.find(label) == std::string::npos) left += label;
  }
  return left;
}

// The position in `term` of each label of `wanted`; empty unless the two have the same labels.
std::vector<int> AxesOf(const std::string& wanted, const std::string& term) {
  std::vector<int> axes;
  for (char label : wanted) {
    const size_t at = term.find(label);
    if (at == std::string::npos) return {};
    axes.push_back(static_cast<int>(at));
  }
  return wanted.size() == term.size() ? axes : std::vector<int>();
}

class Finder {
 public:
  explicit Finder(const AttentionNodes& nodes) : nodes_(&nodes), view_(&nodes.view()) {}

  std::optional<Attention> Find(ValueId weights, ValueId v) {
    found_.v = v;
    const Node* softmax = FindSoftmax(weights);
    if (softmax == nullptr) return std::nullopt;
    const ValueId scores = softmax->inputs[0];
    if (guard_ != kNone && !guard_keeps_ && AsksForMasked(guard_, scores)) {
      shared_.push_back(scores);
      found_.clears_masked = true;
      guard_ = kNone;
    }
    if (!Descend(scores, 1)) return std::nullopt;
    if (guard_ != kNone && !ResolveGuard()) return std::nullopt;
    if (!LeavesAreOutside()) return std::nullopt;
    return found_;
  }

  void Note(const Node& node) { found_.nodes.push_back(view_->IdOf(node)); }

 private:
  // The Softmax that computes the weights, found through reshapes, casts and guards.
  const Node* FindSoftmax(ValueId value) {
    for (int i = 0; i < kMostSteps; ++i) {
      if (const Node* softmax = Made(value, "Softmax")) {
        Note(*softmax);
        return nodes_->IsOverLastAxis(*softmax) ? softmax : nullptr;
      }
      std::optional<ValueId> inner = BehindView(value);
      if (!inner) inner = BehindGuard(value);
      if (!inner) return nullptr;
      value = *inner;
    }
    return nullptr;
  }

  // Goes from `value` back to the product of query and key. `factor` is the factor by which the
  // nodes after `value` multiply it.
  bool Descend(ValueId value, double factor) {
    for (int i = 0; i < kMostSteps; ++i) {
      if (const Node* product = Made(value, "MatMul")) {
        Note(*product);
        found_.scale = factor;
        found_.q = Unscaled(product->inputs[0]);
        FindKey(product->inputs[1]);
        return true;
      }
      if (IsEinsumOfScores(value, factor)) return true;
      std::optional<ValueId> inner = BehindView(value);
      if (!inner) inner = BehindScale(value, factor);
      if (!inner) inner = BehindHeadScale(value);
      if (!inner) inner = BehindFloor(value);
      if (!inner) inner = BehindWhere(value, factor);
      if (!inner) return DescendSum(value, factor);
      value = *inner;
    }
    return false;
  }

  // "bqhd,bkhd->bhqk", with the axes of the operands in any order.
  bool IsEinsumOfScores(ValueId value, double factor) {
    const Node* product = Made(value, "Einsum");
    auto e = product == nullptr ? std::nullopt : EinsumOf(view_->graph, *product);
    if (!e || e->y.size() < 2) return false;
    const std::string stack = e->y.substr(0, e->y.size() - 2);
    const char query = e->y[stack.size()], key = e->y.back();
    const bool turned = e->a.find(query) == std::string::npos;
    const std::string &q = turned ? e->b : e->a, &k = turned ? e->a : e->b;
    const std::string dim = Without(q, stack + query);
    if (dim.size() != 1 || Without(k, stack + key) != dim) return false;
    found_.q_axes = AxesOf(stack + query + dim, q);
    found_.k_axes = AxesOf(stack + key + dim, k);
    if (found_.q_axes.empty() || found_.k_axes.empty()) return false;
    Note(*product);
    found_.scale = factor;
    found_.q = Unscaled(product->inputs[turned ? 1 : 0]);
    found_.k = Unscaled(product->inputs[turned ? 0 : 1]);
    return true;
  }

  // scores + mask, mask + scores or scores - mask.
  bool DescendSum(ValueId value, double factor) {
    const Node* sum = Made(value, "Add");
    const bool is_add = sum != nullptr;
    if (!is_add) sum = Made(value, "Sub");
    if (sum == nullptr || !TakesMasks()) return false;
    for (int i = 0; i < (is_add ? 2 : 1); ++i) {
      if (!nodes_->KeepsElements(*sum, i)) continue;
      Finder branch = *this;
      branch.Note(*sum);
      const ValueId mask = WithoutRepeats(*view_, sum->inputs[1 - i], branch.found_.nodes);
      branch.found_.masks.push_back({.value = mask,
                                     .factor = is_add ? factor : -factor,
                                     .scores = *nodes_->ShapeOf(sum->outputs[0])});
      if (!branch.Descend(sum->inputs[i], factor)) continue;
      *this = std::move(branch);
      return true;
    }
    return false;
  }

  // Finds k, the operand of the product without the Transpose of its last two axes. PyTorch's newer
  // exporter puts that Transpose between two Reshapes. There may be scales on either side.
  void FindKey(ValueId value) {
    value = Unscaled(value);
    found_.k = value;
    found_.k_is_transposed = true;
    const Node* outer = Made(value, "Reshape");
    if (outer != nullptr && nodes_->KeepsPlanes(*outer)) {
      value = outer->inputs[0];
    } else {
      outer = nullptr;
    }
    const Node* swap = Made(value, "Transpose");
    if (swap == nullptr || !nodes_->SwapsLastTwo(*swap)) return;
    if (outer != nullptr) Note(*outer);
    Note(*swap);
    value = swap->inputs[0];
    if (outer != nullptr) value = Regrouped(value, nodes_->RankOf(found_.k));
    found_.k = Unscaled(value);
    found_.k_is_transposed = false;
  }

  // The input of the Reshape that computes `value`, if it has this rank; else `value`.
  ValueId Regrouped(ValueId value, int rank) {
    const Node* inner = nodes_->Sole(value);
    if (inner == nullptr || !nodes_->KeepsPlanes(*inner)) return value;
    if (nodes_->RankOf(inner->inputs[0]) != rank) return value;
    Note(*inner);
    return inner->inputs[0];
  }

  ValueId Unscaled(ValueId value) {
    for (int i = 0; i < kMostSteps; ++i) {
      auto inner = BehindScale(value, found_.scale);
      if (!inner) break;
      value = *inner;
    }
    return value;
  }

  // Each of these functions skips one node: it records the node and returns its input. nullopt if
  // the node is of another form.

  std::optional<ValueId> BehindView(ValueId value) {
    for (const char* op : {"Cast", "Reshape", "Unsqueeze", "Squeeze"}) {
      const Node* node = Made(value, op);
      if (node == nullptr) continue;
      if (!nodes_->IsFloatCast(*node) && !nodes_->KeepsPlanes(*node)) return std::nullopt;
      Note(*node);
      return node->inputs[0];
    }
    return std::nullopt;
  }

  // A multiplication or division by a number, which is multiplied into `factor`.
  std::optional<ValueId> BehindScale(ValueId value, double& factor) {
    const Node* node = Made(value, "Mul");
    const bool divides = node == nullptr;
    if (divides) node = Made(value, "Div");
    for (int i = divides ? 1 : 0; node != nullptr && i < 2; ++i) {
      // A constant of a higher rank than the other operand would add axes to the result.
      if (nodes_->RankOf(node->inputs[1 - i]) != nodes_->RankOf(node->outputs[0])) continue;
      auto by = nodes_->NumberOf(node->inputs[i]);
      if (!by || *by == 0) continue;
      factor *= divides ? 1 / *by : *by;
      Note(*node);
      return node->inputs[1 - i];
    }
    return std::nullopt;
  }

  // A multiplication by one constant for each head, as in Swin v2 and XCiT.
  std::optional<ValueId> BehindHeadScale(ValueId value) {
    const Node* node = Made(value, "Mul");
    for (int i = 0; node != nullptr && found_.head_scale == kNone && i < 2; ++i) {
      const Tensor* by = view_->Constant(node->inputs[i]);
      if (by == nullptr || by->dims().size() < 3 || !nodes_->KeepsElements(*node, 1 - i)) continue;
      if (*(by->dims().end() - 1) != 1 || *(by->dims().end() - 2) != 1) continue;
      Note(*node);
      found_.head_scale = node->inputs[i];
      found_.scaled_scores = *nodes_->ShapeOf(node->outputs[0]);
      return node->inputs[1 - i];
    }
    return std::nullopt;
  }

  // A mask that is added before a scale for each head would be a different mask for each head.
  bool TakesMasks() const { return found_.masks.size() < kMostMasks && found_.head_scale == kNone; }

  // max(scores, the lowest finite number), as in OPT.
  std::optional<ValueId> BehindFloor(ValueId value) {
    const Node* node = Made(value, "Max");
    for (int i = 0; node != nullptr && node->inputs.size() == 2 && i < 2; ++i) {
      auto floor = nodes_->NumberOf(node->inputs[i]);
      if (!floor || *floor > kFloor || !nodes_->KeepsElements(*node, 1 - i)) continue;
      Note(*node);
      return node->inputs[1 - i];
    }
    return std::nullopt;
  }

  // where(condition, scores, low number), or with the number first.
  std::optional<ValueId> BehindWhere(ValueId value, double factor) {
    const Node* node = Made(value, "Where");
    if (node == nullptr || factor <= 0 || !TakesMasks()) return std::nullopt;
    for (int i : {1, 2}) {
      auto number = nodes_->NumberOf(node->inputs[3 - i]);
      if (!number || !(*number * factor <= kNoWeight)) continue;
      if (!nodes_->KeepsElements(*node, i)) continue;
      Note(*node);
      const ValueId condition = WithoutRepeats(*view_, node->inputs[0], found_.nodes);
      found_.masks.push_back(
          {.kind = i == 1 ? AttentionMask::Kind::kKept : AttentionMask::Kind::kDropped,
           .value = condition,
           .number = *number,
           .scores = *nodes_->ShapeOf(node->outputs[0])});
      return node->inputs[i];
    }
    return std::nullopt;
  }

  // where(condition, 0, weights) or where(condition, weights, 0). The condition is kept in `guard_`
  // until the scores are known.
  std::optional<ValueId> BehindGuard(ValueId value) {
    const Node* where = Made(value, "Where");
    if (where == nullptr || guard_ != kNone || found_.clears_masked) return std::nullopt;
    guard_keeps_ = nodes_->NumberOf(where->inputs[2]) == 0.0;
    const int kept = guard_keeps_ ? 1 : 2;
    if (!nodes_->KeepsElements(*where, kept)) return std::nullopt;
    const ValueId weights = where->inputs[kept];
    if (nodes_->NumberOf(where->inputs[3 - kept]) != 0.0) return std::nullopt;
    shared_.push_back(weights);
    Note(*where);
    const Node* is_nan = view_->OnlyProducer(where->inputs[0], "IsNaN");
    if (!guard_keeps_ && is_nan != nullptr && is_nan->inputs[0] == weights) {
      Note(*is_nan);
      found_.clears_masked = true;
    } else {
      guard_ = where->inputs[0];
      found_.cleared_weights = *nodes_->ShapeOf(where->outputs[0]);
    }
    return weights;
  }

  // Whether `condition` is that of PyTorch's safe softmax: not any(not (scores == -inf)), or
  // all(scores == -inf), over the keys. any() and all() are a maximum or minimum between casts.
  bool AsksForMasked(ValueId condition, ValueId scores) {
    std::vector<NodeId> passed;
    int outer_nots = 0, inner_nots = 0;
    const Node* reduction = nullptr;
    for (int i = 0; i < kMostSteps; ++i) {
      const Node* node = nodes_->Sole(condition);
      if (node == nullptr) return false;
      passed.push_back(view_->IdOf(*node));
      if (node->op_type == "Equal") {
        const int nots = reduction != nullptr && reduction->op_type == "ReduceMax" ? 1 : 0;
        if (reduction == nullptr || outer_nots != nots || inner_nots != nots) return false;
        if (!IsInfinity(*node, scores)) return false;
        found_.nodes.insert(found_.nodes.end(), passed.begin(), passed.end());
        return true;
      }
      if (node->op_type == "Not") {
        ++(reduction == nullptr ? outer_nots : inner_nots);
      } else if (node->op_type == "ReduceMax" || node->op_type == "ReduceMin") {
        if (reduction != nullptr || !nodes_->ReducesLastAxis(*node)) return false;
        reduction = node;
      } else if (node->op_type != "Cast") {
        return false;
      }
      condition = node->inputs[0];
    }
    return false;
  }

  // x == -infinity.
  bool IsInfinity(const Node& equal, ValueId x) {
    for (int i : {0, 1}) {
      if (equal.inputs[i] != x) continue;
      auto number = nodes_->NumberOf(equal.inputs[1 - i]);
      if (number && *number < 0 && std::isinf(*number)) return true;
    }
    return false;
  }

  // The function body of ONNX's Attention tests the mask: max(mask) == -inf over the keys. Any
  // other condition is computed as the model does it. False if the guard keeps weights for another
  // reason than the mask.
  bool ResolveGuard() {
    if (found_.masks.size() == 1 && MeetsWeightsAsScores(found_.masks[0]) &&
        (IsMaskItself() || (!guard_keeps_ && AsksMask(guard_)))) {
      found_.clears_masked = true;
      return true;
    }
    found_.cleared = guard_;
    return !guard_keeps_;
  }

  // Whether the mask would be broadcast to the guarded weights as it is to the scores. A Reshape
  // between the two may bring its axes to others.
  bool MeetsWeightsAsScores(const AttentionMask& mask) const {
    const auto shape = nodes_->ShapeOf(mask.value);
    return shape && PlanesRead(*shape, mask.scores) == PlanesRead(*shape, found_.cleared_weights);
  }

  // The weights of the keys that the mask hides are 0, also if it hides all keys of a query. So it
  // does not matter how low their scores are.
  bool IsMaskItself() {
    AttentionMask& mask = found_.masks[0];
    std::vector<NodeId> repeats;
    const auto kind = guard_keeps_ ? AttentionMask::Kind::kKept : AttentionMask::Kind::kDropped;
    if (mask.kind != kind || WithoutRepeats(*view_, guard_, repeats) != mask.value) return false;
    mask.number = -std::numeric_limits<double>::infinity();
    return true;
  }

  bool AsksMask(ValueId condition) {
    const Node* equal = view_->Producer(condition, "Equal");
    for (int i = 0; equal != nullptr && i < 2; ++i) {
      const Node* max = view_->Producer(equal->inputs[i], "ReduceMax");
      if (max == nullptr || !IsMaskAdded(max->inputs[0]) || !nodes_->ReducesLastAxis(*max))
        continue;
      const size_t before = found_.nodes.size();
      const bool asks = IsInfinity(*equal, max->outputs[0]);
      if (asks && nodes_->Sole(condition) == equal && nodes_->Sole(equal->inputs[i]) == max) {
        Note(*equal);
        Note(*max);
      } else {
        found_.nodes.resize(before);  // the condition has other readers
      }
      if (asks) return true;
    }
    return false;
  }

  bool IsMaskAdded(ValueId value) const {
    const AttentionMask& mask = found_.masks[0];
    return mask.kind == AttentionMask::Kind::kAdded && mask.factor > 0 && mask.value == value;
  }

  // The values that the units will read are computed outside of the pattern. That is not so if one
  // of them is an inner value, as in s + s.
  bool LeavesAreOutside() const {
    std::vector<ValueId> leaves = {found_.q, found_.k, found_.v, found_.cleared};
    for (const AttentionMask& mask : found_.masks) leaves.push_back(mask.value);
    return std::all_of(leaves.begin(), leaves.end(), [&](ValueId leaf) {
      const NodeId maker = leaf == kNone ? kNone : view_->graph.values[leaf].producer;
      const auto& nodes = found_.nodes;
      return maker == kNone || std::find(nodes.begin(), nodes.end(), maker) == nodes.end();
    });
  }

  // The producer of `value` if it is `op` and only the pattern reads the value. A value in
  // `shared_` is also read by a guard, whose nodes are part of the pattern; the caller of the match
  // checks that it has no other readers.
  const Node* Made(ValueId value, const char* op) const {
    const bool is_shared = std::find(shared_.begin(), shared_.end(), value) != shared_.end();
    return is_shared ? view_->Producer(value, op) : view_->OnlyProducer(value, op);
  }

  const AttentionNodes* nodes_;
  const GraphView* view_;
  Attention found_;
  ValueId guard_ = kNone;
  bool guard_keeps_ = false;  // weights where the condition is true; otherwise it clears them there
  std::vector<ValueId> shared_;
};

// "bhqk,bkhd->bqhd": `weights` is the operand whose axes are those of the scores, in their order.
std::optional<Attention> FindAroundEinsum(const AttentionNodes& nodes, const Node& anchor) {
  const auto e = EinsumOf(nodes.view().graph, anchor);
  for (int i = 0; e && i < 2; ++i) {
    const std::string &weights = i == 0 ? e->a : e->b, &v = i == 0 ? e->b : e->a;
    if (weights.size() < 2) continue;
    const std::string stack = weights.substr(0, weights.size() - 2);
    const char query = weights[stack.size()], key = weights.back();
    const std::string dim = Without(v, stack + key);
    if (dim.size() != 1) continue;
    const std::vector<int> v_axes = AxesOf(absl::StrCat(stack, std::string(1, key), dim), v);
    const std::vector<int> y_axes = AxesOf(absl::StrCat(stack, std::string(1, query), dim), e->y);
    if (v_axes.empty() || y_axes.empty()) continue;
    auto found = Finder(nodes).Find(anchor.inputs[i], anchor.inputs[1 - i]);
    if (!found) continue;
    found->v_axes = v_axes;
    found->y_axes = y_axes;
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Attention> FindAttention(const GraphView& view, const Node& anchor) {
  const AttentionNodes nodes(view);
  if (anchor.op_type == "Einsum") return FindAroundEinsum(nodes, anchor);
  if (auto found = Finder(nodes).Find(anchor.inputs[0], anchor.inputs[1])) {
    if (!found->k_is_transposed && found->q_axes.empty()) {
      found->packed = FindPackedHeads(nodes, found->q, found->k, found->v);
    }
    return found;
  }
  // v^T p^T, in models that put channels before positions.
  const Node* swap = nodes.SwapBehind(anchor.inputs[1]);
  if (swap == nullptr) return std::nullopt;
  Finder finder(nodes);
  finder.Note(*swap);
  auto found = finder.Find(swap->inputs[0], anchor.inputs[0]);
  if (found) found->v_is_transposed = true;
  return found;
}

int64_t PlanesOf(const GraphView& view, ValueId value) {
  auto shape = AttentionNodes(view).ShapeOf(value);
  if (!shape) return -1;
  int64_t planes = 1;
  for (size_t i = 0; i + 2 < shape->size(); ++i) planes *= (*shape)[i];
  return planes;
}

ValueId WithoutRepeats(const GraphView& view, ValueId value, std::vector<NodeId>& nodes) {
  const AttentionNodes ask(view);
  std::vector<NodeId> passed;
  ValueId inner = value;
  for (int i = 0; i < kMostSteps && PlanesOf(view, inner) > 1; ++i) {
    const Node* node = ask.Sole(inner);
    if (node == nullptr || (node->op_type != "Expand" && !ask.KeepsPlanes(*node))) return value;
    auto from = ask.ShapeOf(node->inputs[0]), to = ask.ShapeOf(inner);
    if (!from || from->empty() || from->back() != to->back()) return value;
    passed.push_back(view.IdOf(*node));
    inner = node->inputs[0];
  }
  if (PlanesOf(view, inner) != 1) return value;
  nodes.insert(nodes.end(), passed.begin(), passed.end());
  return inner;
}

}  // namespace anemone
