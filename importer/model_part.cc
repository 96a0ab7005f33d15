#include "importer/model_part.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "importer/edit.h"

namespace anemone {
namespace {

absl::Status Wrong() { return absl::DataLossError("a part of a model is not of this model"); }

// Copies nodes of a graph to another.
class Copier {
 public:
  explicit Copier(const Graph& from) : from_(from) { to_.name = from.name; }

  void Copy(NodeId id) {
    Node& node = to_.nodes.emplace_back(from_.nodes[id]);
    for (ValueId& value : node.inputs) value = Copied(value);
    for (ValueId& value : node.outputs) value = Copied(value);
  }
  Graph Take() {
    SetProducers(to_);
    return std::move(to_);
  }

 private:
  ValueId Copied(ValueId value) {
    if (value == kNone) return kNone;
    const auto [found, is_new] = ids_.emplace(value, static_cast<ValueId>(to_.values.size()));
    if (is_new) to_.values.push_back(from_.values[value]);
    return found->second;
  }

  const Graph& from_;
  Graph to_;
  absl::flat_hash_map<ValueId, ValueId> ids_;
};

}  // namespace

absl::StatusOr<Graph> PartOf(const ModelPart& part, const Graph& whole) {
  Copier copier(whole);
  NodeId last = -1;
  for (const NodeId id : part.nodes) {
    if (id <= last || id >= static_cast<NodeId>(whole.nodes.size())) return Wrong();
    if (!whole.nodes[id].captures.empty()) return Wrong();
    copier.Copy(last = id);
  }
  Graph graph = copier.Take();
  absl::flat_hash_map<absl::string_view, ValueId> read, made;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.producer != kNone) {
      made.emplace(value.name, static_cast<ValueId>(v));
    } else if (!value.constant) {
      read.emplace(value.name, static_cast<ValueId>(v));
    }
  }
  if (read.size() != part.inputs.size()) return Wrong();
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
  return graph;
}

}  // namespace anemone
