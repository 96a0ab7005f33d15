#include "importer/model_part.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "importer/edit.h"

namespace anemone {
namespace {

absl::Status Wrong() { return absl::DataLossError("a part of a model is not of this model"); }

}  // namespace

absl::Status CutToPart(const ModelPart& part, Graph& graph) {
  std::vector<bool> dead(graph.nodes.size(), true);
  absl::flat_hash_map<absl::string_view, ValueId> read, made;
  for (const NodeId id : part.nodes) {
    if (id < 0 || id >= static_cast<NodeId>(dead.size()) || !dead[id]) return Wrong();
    dead[id] = false;
    for (const ValueId v : graph.nodes[id].outputs) {
      if (v != kNone) made.emplace(graph.values[v].name, v);
    }
  }
  for (const NodeId id : part.nodes) {
    const Node& node = graph.nodes[id];
    if (!node.captures.empty()) return Wrong();
    for (const ValueId v : node.inputs) {
      if (v == kNone || graph.values[v].constant || made.contains(graph.values[v].name)) continue;
      read.emplace(graph.values[v].name, v);
    }
  }
  if (read.size() != part.inputs.size()) return Wrong();
  graph.inputs.clear();
  graph.outputs.clear();
  graph.defaults.clear();
  for (const ModelPart::Input& input : part.inputs) {
    const auto found = read.find(input.name);
    if (found == read.end()) return Wrong();
    Value& value = graph.values[found->second];
    value.type = input.type;
    value.shape.emplace();
    for (const int64_t size : input.dims) value.shape->push_back({.size = size});
    graph.inputs.push_back(found->second);
  }
  for (const std::string& name : part.outputs) {
    const auto found = made.find(name);
    if (found == made.end()) return Wrong();
    graph.outputs.push_back(found->second);
  }
  Compact(graph, dead);
  return absl::OkStatus();
}

}  // namespace anemone
