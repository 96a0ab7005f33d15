#include "importer/infer/constant_part.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "importer/edit.h"

namespace anemone {

absl::StatusOr<ConstantPart> ConstantPartOf(const Graph& whole, absl::Span<const Node> nodes,
                                            absl::Span<const int> uses) {
  ConstantPart part;
  Graph& graph = part.graph;
  graph.name = "constants";
  absl::flat_hash_map<ValueId, ValueId> ids;
  absl::flat_hash_map<ValueId, int> uses_inside;
  const auto move_over = [&](std::vector<ValueId>& list) {
    for (ValueId& id : list) {
      if (id == kNone) continue;
      const auto [it, is_new] = ids.try_emplace(id, static_cast<ValueId>(graph.values.size()));
      if (is_new) graph.values.push_back(whole.values[id]);
      id = it->second;
    }
  };
  for (const Node& node : nodes) {
    for (ValueId id : node.inputs) {
      if (id != kNone) ++uses_inside[id];
    }
    graph.nodes.push_back(node);
    move_over(graph.nodes.back().inputs);
    move_over(graph.nodes.back().outputs);
  }
  for (const Node& node : nodes) {
    for (ValueId id : node.outputs) {
      if (id == kNone || uses[id] <= uses_inside[id]) continue;
      part.wanted.push_back(id);
      graph.outputs.push_back(ids.at(id));
    }
  }
  if (part.wanted.empty()) return part;
  SetProducers(graph);
  for (const Node& node : graph.nodes) {
    for (ValueId id : node.inputs) {
      if (id == kNone || graph.values[id].producer != kNone || graph.values[id].constant) continue;
      return absl::FailedPreconditionError("it depends on a node that cannot be computed");
    }
  }
  return part;
}

}  // namespace anemone
