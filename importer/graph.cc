#include "importer/graph.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace anemone {

bool Value::is_static() const {
  if (!shape.has_value()) return false;
  for (const Dim& dim : *shape) {
    if (!dim.known()) return false;
  }
  return true;
}

std::vector<int64_t> Value::dims() const {
  std::vector<int64_t> sizes;
  sizes.reserve(shape->size());
  for (const Dim& dim : *shape) sizes.push_back(dim.size);
  return sizes;
}

const Attribute* Node::FindAttribute(absl::string_view attribute_name) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == attribute_name) return &attribute;
  }
  return nullptr;
}

bool OnlyMoves(const Node& node) {
  static const auto& ops = *new absl::flat_hash_set<absl::string_view>{
      "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"};
  return node.domain.empty() && ops.contains(node.op_type);
}

ValueId BehindMoves(const Graph& graph, ValueId value) {
  while (value != kNone && graph.values[value].producer != kNone) {
    const Node& node = graph.nodes[graph.values[value].producer];
    if (!OnlyMoves(node)) break;
    value = node.inputs[0];
  }
  return value;
}

std::vector<std::vector<NodeId>> ConsumersOf(const Graph& graph) {
  std::vector<std::vector<NodeId>> consumers(graph.values.size());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const auto add = [&](ValueId value) {
      // Nodes are visited in order, so if this node is listed already, it is the last entry.
      if (value == kNone) return;
      if (!consumers[value].empty() && consumers[value].back() == id) return;
      consumers[value].push_back(id);
    };
    for (ValueId value : graph.nodes[id].inputs) add(value);
    for (ValueId value : graph.nodes[id].captures) add(value);
  }
  return consumers;
}

std::vector<Attribute::GraphPtr> BodiesOf(const Node& node) {
  std::vector<Attribute::GraphPtr> bodies;
  for (const Attribute& attribute : node.attributes) {
    if (const auto* body = std::get_if<Attribute::GraphPtr>(&attribute.value)) {
      bodies.push_back(*body);
    } else if (const auto* list = std::get_if<std::vector<Attribute::GraphPtr>>(&attribute.value)) {
      bodies.insert(bodies.end(), list->begin(), list->end());
    }
  }
  return bodies;
}

std::string NodeLabel(const Model& model, const Node& node) {
  const auto full = [](const std::string& domain, const std::string& op_type) {
    return domain.empty() ? op_type : absl::StrCat(domain, ".", op_type);
  };
  const std::string op = full(node.domain, node.op_type);
  const Origin* origin = node.origins.empty() ? nullptr : &model.origins[node.origins.front()];
  const std::string id = origin == nullptr ? "" : origin->id;
  // For a node that replaces part of a node of the file, name the latter: the user knows it.
  if (origin != nullptr && full(origin->domain, origin->op_type) != op && !origin->name.empty()) {
    return absl::StrCat("node '", origin->name, "' (", full(origin->domain, origin->op_type), ", ",
                        id, "; its ", op, ")");
  }
  if (node.name.empty()) return absl::StrCat("node ", id.empty() ? "" : id + " ", "(", op, ")");
  return absl::StrCat("node '", node.name, "' (", op, id.empty() ? "" : ", ", id, ")");
}

}  // namespace anemone
