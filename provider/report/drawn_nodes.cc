#include "provider/report/drawn_nodes.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "partitioner/bodies.h"

namespace anemone {
namespace {

// "float32 1x64xheightx7"; "float32" if the rank is not known.
std::string TypeText(const Value& value) {
  std::string text =
      value.type == DataType::kUndefined ? "?" : std::string(DataTypeName(value.type));
  if (!value.shape) return text;
  const char* before = " ";
  for (const Dim& dim : *value.shape) {
    const std::string size = dim.known()          ? absl::StrCat(dim.size)
                             : dim.symbol.empty() ? "?"
                                                  : absl::StrCat("(", dim.symbol, ")");
    absl::StrAppend(&text, before, size);
    before = "x";
  }
  return value.shape->empty() ? text + " scalar" : text;
}

int64_t BytesOfElements(double elements, DataType type) {
  constexpr double kMost = 1e18;
  return static_cast<int64_t>(std::min(kMost, elements * BitsOf(type) / 8));
}

}  // namespace

DrawnNodes::DrawnNodes(const Model& model) : model_(model), place_(model.origins.size(), kNone) {
  by_id_.reserve(model.origins.size());
  for (size_t i = 0; i < model.origins.size(); ++i) {
    by_id_.emplace(model.origins[i].id, static_cast<OriginId>(i));
  }
  AddNodes(model.graph, 0);
  AddEdges(model.graph);
  for (OriginId id = 0; id < static_cast<OriginId>(place_.size()); ++id) {
    if (place_[id] != kNone) continue;
    place_[id] = static_cast<int>(nodes_.size());
    nodes_.push_back({.origin = id});
  }
}

int DrawnNodes::PlaceOf(const Node& node) const { return place_[NamingOrigin(model_, node)]; }

int DrawnNodes::Find(absl::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? kNone : place_[found->second];
}

void DrawnNodes::Measure(const Graph& graph, const Node& node, DrawnNode& drawn) const {
  for (ValueId v : node.inputs) {
    if (v == kNone || !graph.values[v].constant) continue;
    drawn.weight_bytes += BytesOfElements(static_cast<double>(graph.values[v].constant->elements()),
                                          graph.values[v].type);
  }
  for (ValueId v : node.outputs) {
    if (v == kNone) continue;
    const Value& value = graph.values[v];
    if (drawn.output.empty()) drawn.output = TypeText(value);
    if (!value.is_static()) continue;
    double elements = 1;
    for (int64_t dim : value.dims()) elements *= static_cast<double>(dim);
    drawn.output_bytes += BytesOfElements(elements, value.type);
  }
}

void DrawnNodes::AddNodes(const Graph& graph, int part) {
  for (const Node& node : graph.nodes) {
    const OriginId origin = NamingOrigin(model_, node);
    if (place_[origin] == kNone) {
      place_[origin] = static_cast<int>(nodes_.size());
      nodes_.push_back({.origin = origin, .part = part});
    }
    Measure(graph, node, nodes_[place_[origin]]);
  }
  for (const Node& node : graph.nodes) {
    const int owner = PlaceOf(node);
    for (const Attribute::GraphPtr& body : BodiesOf(node)) {
      owners_.push_back(owner);
      AddNodes(*body, static_cast<int>(owners_.size()));
    }
  }
}

// Also joins the nodes of the file that are not drawn to those that they became part of.
void DrawnNodes::AddEdges(const Graph& graph) {
  absl::flat_hash_set<std::pair<int, int>> known;
  for (const Node& node : graph.nodes) {
    const int reader = PlaceOf(node);
    for (const std::vector<ValueId>* list : {&node.inputs, &node.captures}) {
      for (ValueId v : *list) {
        const NodeId producer = v == kNone ? kNone : graph.values[v].producer;
        if (producer == kNone) continue;
        const int maker = PlaceOf(graph.nodes[producer]);
        if (maker != reader && known.insert({maker, reader}).second) {
          edges_.emplace_back(maker, reader);
        }
      }
    }
    const std::vector<Attribute::GraphPtr> bodies = BodiesOf(node);
    for (const Attribute::GraphPtr& body : bodies) AddEdges(*body);
    if (!bodies.empty()) continue;  // it also has the origins of the nodes in its bodies
    for (OriginId origin : node.origins) {
      if (place_[origin] != kNone) continue;
      place_[origin] = reader;
      nodes_[reader].joined.push_back(origin);
    }
  }
}

}  // namespace anemone
