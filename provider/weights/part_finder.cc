#include "provider/weights/part_finder.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "importer/operators/intervals.h"

namespace anemone {
namespace {

constexpr size_t kMostNodes = 64;  // of a part

}  // namespace

PartFinder::PartFinder(const Graph& as_read, const Model& model, const Plan& plan)
    : file_(as_read),
      graph_(model.graph),
      plan_(plan),
      readers_(ConsumersOf(as_read)),
      entry_of_(model.origins.size(), kNone),
      nodes_of_(model.origins.size()),
      is_output_(as_read.values.size()),
      facts_(FloatFactsOf(model.graph, IntegerRangesOf(model.graph))) {
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    for (OriginId origin : plan.entries[i].origins) entry_of_[origin] = static_cast<int>(i);
  }
  for (size_t i = 0; i < file_.nodes.size(); ++i) {
    for (OriginId origin : file_.nodes[i].origins) {
      nodes_of_[origin].push_back(static_cast<NodeId>(i));
    }
  }
  for (ValueId v : file_.outputs) is_output_[v] = true;
  for (size_t v = 0; v < graph_.values.size(); ++v) {
    values_.emplace(graph_.values[v].name, static_cast<ValueId>(v));
  }
}

std::optional<PartFinder::Around> PartFinder::Find(ValueId weight) const {
  if (is_output_[weight]) return std::nullopt;
  Around around;
  std::set<NodeId> part;
  std::vector<NodeId> open;
  for (NodeId id : readers_[weight]) {
    const std::optional<int> segment = ReadsRows(file_.nodes[id], weight);
    if (segment) {
      around.tables.push_back(*segment);
    } else {
      open.push_back(id);
    }
  }
  if (open.empty()) return around.tables.empty() ? std::nullopt : std::optional(around);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!part.insert(id).second) continue;
    if (part.size() > kMostNodes || !Extend(file_.nodes[id], open)) return std::nullopt;
  }
  return AddPart(part, around) ? std::optional(around) : std::nullopt;
}

// The CPU segment in which the node reads rows of the weight and does nothing else with it.
std::optional<int> PartFinder::ReadsRows(const Node& node, ValueId weight) const {
  const bool is_gather = node.domain.empty() && node.op_type == "Gather" &&
                         node.inputs[0] == weight && node.inputs[1] != weight;
  if (!is_gather || node.origins.size() != 1 || entry_of_[node.origins[0]] == kNone) {
    return std::nullopt;
  }
  const PlanEntry& entry = plan_.entries[entry_of_[node.origins[0]]];
  if (entry.placement != Placement::kCpu || entry.nodes.size() != 1) return std::nullopt;
  const Node& planned = graph_.nodes[entry.nodes[0]];
  if (planned.op_type != "Gather" || planned.origins != node.origins) return std::nullopt;
  const Value& table = graph_.values[planned.inputs[0]];
  const std::string& name = file_.values[weight].name;
  if (!table.constant || table.name != name || !file_.values[weight].constant ||
      table.constant->bytes().data() != file_.values[weight].constant->bytes().data()) {
    return std::nullopt;
  }
  return entry.segment;
}

// Adds nodes that belong to a part with `node`.
bool PartFinder::Extend(const Node& node, std::vector<NodeId>& open) const {
  if (!node.captures.empty() || !BodiesOf(node).empty()) return false;
  for (OriginId origin : node.origins) {
    if (entry_of_[origin] == kNone) return false;
    const PlanEntry& entry = plan_.entries[entry_of_[origin]];
    if (entry.placement == Placement::kCpu) return false;
    for (OriginId together : entry.origins) {
      open.insert(open.end(), nodes_of_[together].begin(), nodes_of_[together].end());
    }
  }
  for (ValueId v : node.inputs) {
    if (v == kNone || file_.values[v].constant || BorderOf(v) != kNone) continue;
    if (file_.values[v].producer == kNone) return false;
    open.push_back(file_.values[v].producer);
  }
  for (ValueId v : node.outputs) {
    if (v == kNone || BorderOf(v) != kNone) continue;
    if (is_output_[v]) return false;
    open.insert(open.end(), readers_[v].begin(), readers_[v].end());
  }
  return true;
}

// The value of the imported graph that is this value of the file, if it is computed in each run
// and has a known size; or kNone.
ValueId PartFinder::BorderOf(ValueId of_file) const {
  const auto found = values_.find(file_.values[of_file].name);
  if (found == values_.end()) return kNone;
  const Value& value = graph_.values[found->second];
  const bool is_border = !value.constant && value.is_static() && value.other_type.empty() &&
                         value.type != DataType::kUndefined;
  return is_border ? found->second : kNone;
}

bool PartFinder::AddPart(const std::set<NodeId>& nodes, Around& around) const {
  ModelPart& part = around.nodes;
  part.nodes.assign(nodes.begin(), nodes.end());
  std::set<ValueId> made, read;
  for (NodeId id : nodes) {
    made.insert(file_.nodes[id].outputs.begin(), file_.nodes[id].outputs.end());
  }
  for (NodeId id : nodes) {
    for (ValueId v : file_.nodes[id].inputs) {
      if (v == kNone || file_.values[v].constant || made.count(v) > 0) continue;
      if (!read.insert(v).second) continue;
      const Value& value = graph_.values[BorderOf(v)];
      part.inputs.push_back({value.name, value.type, value.dims()});
    }
  }
  for (ValueId v : made) {
    if (v == kNone) continue;
    const bool is_read_outside =
        is_output_[v] || std::any_of(readers_[v].begin(), readers_[v].end(),
                                     [&](NodeId id) { return nodes.count(id) == 0; });
    if (!is_read_outside) continue;
    const ValueId border = BorderOf(v);
    if (!IsFloating(graph_.values[border].type)) return false;
    around.has_bounds = around.has_bounds || facts_.IsKnown(border);
    part.outputs.push_back(file_.values[v].name);
  }
  return !part.outputs.empty();
}

}  // namespace anemone
