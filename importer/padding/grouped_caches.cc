#include "importer/padding/grouped_caches.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/elements.h"

namespace anemone {
namespace {

// Indices of GroupQueryAttention's inputs. Output 1 belongs to kPastKey, output 2 to kPastValue.
constexpr size_t kPastKey = 3, kPastValue = 4, kLengths = 5, kTotal = 6;

bool IsGrouped(const Node& node) {
  return node.op_type == "GroupQueryAttention" && node.domain == "com.microsoft";
}

// Nodes that pass on numbers of a shape.
bool PassesOn(const Node& node) {
  return OnlyMoves(node) || (node.domain.empty() && node.op_type == "Gather");
}

class GroupedProver {
 public:
  GroupedProver(const Model& model, absl::Span<const MaskPort> masks)
      : model_(model), graph_(model.graph), masks_(masks), consumers_(ConsumersOf(graph_)) {}

  absl::Status TakeCache(const CachePorts& cache);
  absl::Status TakeMask(const MaskPort& mask);
  absl::Status TakeLengths() const;
  absl::Status FollowSizes() const;

 private:
  absl::Status No(ValueId value, absl::string_view what) const {
    return absl::FailedPreconditionError(absl::StrCat("'", graph_.values[value].name, "' ", what));
  }
  absl::Status ReadBy(ValueId value, NodeId reader) const {
    return No(value, absl::StrCat("is also read by ", NodeLabel(model_, graph_.nodes[reader])));
  }
  bool IsOutput(ValueId value) const {
    return std::count(graph_.outputs.begin(), graph_.outputs.end(), value) > 0;
  }
  // True for a sum over the mask's axis, to which zeros add nothing.
  bool SumsMask(const Node& node, const MaskPort& mask) const;
  // Without nodes that only move or convert the value.
  const Node* Producer(ValueId value) const {
    value = BehindMoves(graph_, value);
    const NodeId producer = value == kNone ? kNone : graph_.values[value].producer;
    return producer == kNone ? nullptr : &graph_.nodes[producer];
  }

  const Model& model_;
  const Graph& graph_;
  const absl::Span<const MaskPort> masks_;
  const std::vector<std::vector<NodeId>> consumers_;
  std::set<NodeId> readers_;  // of caches
  std::set<ValueId> sizes_;   // that depend on the length
};

// Only one attention reads the old rows, and nothing reads the new ones.
absl::Status GroupedProver::TakeCache(const CachePorts& cache) {
  const ValueId past = graph_.inputs[cache.input], present = graph_.outputs[cache.output];
  if (IsOutput(past)) return No(past, "is an output too");
  if (consumers_[past].size() != 1) return No(past, "is not read by one node");
  const NodeId id = consumers_[past][0];
  const Node& node = graph_.nodes[id];
  if (!IsGrouped(node) || std::count(node.inputs.begin(), node.inputs.end(), past) != 1) {
    return ReadBy(past, id);
  }
  for (size_t i : {kPastKey, kPastValue}) {
    if (InputOr(node, i) != past || OutputOr(node, i - kPastKey + 1) != present) continue;
    if (!consumers_[present].empty()) return ReadBy(present, consumers_[present][0]);
    readers_.insert(id);
    return absl::OkStatus();
  }
  return No(present, absl::StrCat("is not '", graph_.values[past].name, "' with new rows"));
}

bool GroupedProver::SumsMask(const Node& node, const MaskPort& mask) const {
  if (node.op_type != "ReduceSum" || !node.domain.empty()) return false;
  std::optional<std::vector<int64_t>> axes = IntsOf(node, "axes");
  if (HasInput(node, 1) && graph_.values[node.inputs[1]].constant) {
    axes = IntsOf(*graph_.values[node.inputs[1]].constant);
  }
  const auto rank = static_cast<int64_t>(graph_.values[graph_.inputs[mask.input]].shape->size());
  return axes && axes->size() == 1 &&
         ((*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0]) == static_cast<int64_t>(mask.axis);
}

absl::Status GroupedProver::TakeMask(const MaskPort& mask) {
  const ValueId value = graph_.inputs[mask.input];
  if (IsOutput(value)) return No(value, "is an output too");
  for (const NodeId reader : consumers_[value]) {
    const Node& node = graph_.nodes[reader];
    if (node.op_type == "Shape" && node.domain.empty()) {
      sizes_.insert(node.outputs[0]);
    } else if (!SumsMask(node, mask)) {
      return ReadBy(value, reader);
    }
  }
  return absl::OkStatus();
}

// seqlens_k is the sum of a mask, less 1.
absl::Status GroupedProver::TakeLengths() const {
  for (const NodeId reader : readers_) {
    const ValueId lengths = InputOr(graph_.nodes[reader], kLengths);
    const Node* sub = Producer(lengths);
    const Tensor* one = nullptr;
    if (sub != nullptr && sub->op_type == "Sub" && sub->domain.empty() &&
        graph_.values[sub->inputs[1]].constant) {
      one = &*graph_.values[sub->inputs[1]].constant;
    }
    const auto less = one == nullptr ? std::nullopt : IntsOf(*one, 1);
    const Node* sum = less == std::vector<int64_t>{1} ? Producer(sub->inputs[0]) : nullptr;
    const bool is_counted =
        sum != nullptr && std::any_of(masks_.begin(), masks_.end(), [&](const MaskPort& mask) {
          return sum->inputs[0] == graph_.inputs[mask.input] && SumsMask(*sum, mask);
        });
    if (!is_counted) {
      return absl::FailedPreconditionError(
          absl::StrCat(NodeLabel(model_, graph_.nodes[reader]),
                       ": its seqlens_k is not the sum of the attention mask, less 1"));
    }
  }
  return absl::OkStatus();
}

// The length reaches nothing but total_sequence_length of the attentions.
absl::Status GroupedProver::FollowSizes() const {
  std::set<ValueId> sizes = sizes_;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
    const Node& node = graph_.nodes[id];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!sizes.contains(node.inputs[i])) continue;
      if (readers_.contains(id) && i == kTotal) continue;
      if (!PassesOn(node)) return ReadBy(node.inputs[i], id);
      sizes.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const ValueId captured : node.captures) {
      if (sizes.contains(captured)) return ReadBy(captured, id);
    }
  }
  const auto leaves =
      std::find_if(sizes.begin(), sizes.end(), [&](ValueId value) { return IsOutput(value); });
  return leaves == sizes.end() ? absl::OkStatus() : No(*leaves, "depends on the length");
}

}  // namespace

bool HasGroupedCache(const Graph& graph, absl::Span<const CachePorts> caches) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return IsGrouped(node) && std::any_of(caches.begin(), caches.end(), [&](const auto& cache) {
             return InputOr(node, kPastKey) == graph.inputs[cache.input];
           });
  });
}

std::optional<int64_t> GroupedHeadSize(const Graph& graph, ValueId input) {
  for (const Node& node : graph.nodes) {
    const bool reads = InputOr(node, kPastKey) == input || InputOr(node, kPastValue) == input;
    if (!IsGrouped(node) || !reads || !HasInput(node, 0)) continue;
    const std::optional<Shape>& query = graph.values[node.inputs[0]].shape;
    int64_t heads = IntOr(node, "num_heads", 0);
    // Query, key and value are one input.
    if (!HasInput(node, 1)) heads += 2 * std::min(heads, IntOr(node, "kv_num_heads", 0));
    if (!query || query->size() != 3 || !query->back().known() || heads <= 0) return std::nullopt;
    return query->back().size / heads;
  }
  return std::nullopt;
}

absl::Status ProveGroupedCaches(const Model& model, absl::Span<const CachePorts> caches,
                                absl::Span<const MaskPort> masks) {
  GroupedProver prover(model, masks);
  for (const CachePorts& cache : caches) ANEMONE_RETURN_IF_ERROR(prover.TakeCache(cache));
  for (const MaskPort& mask : masks) ANEMONE_RETURN_IF_ERROR(prover.TakeMask(mask));
  ANEMONE_RETURN_IF_ERROR(prover.TakeLengths());
  return prover.FollowSizes();
}

}  // namespace anemone
