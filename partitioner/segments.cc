#include "partitioner/segments.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

// Where a node is in the order of segments: its level, the number of opset changes before it within
// a CPU level, and the class of its opsets (importer/opset/opsets.h).
using Place = std::tuple<int, int, int>;

// The place of nodes that are placed together: a cover on the engine, or one node.
Place PlaceOf(const GraphView& view, absl::Span<const NodeId> together, int opset_class,
              const std::vector<bool>& on_engine, const std::vector<Place>& places) {
  const Graph& graph = view.graph;
  const bool engine = on_engine[together.back()];
  int level = LowestLevel(engine);
  auto each_producer = [&](auto visit) {
    for (NodeId id : together) {
      ForEachProducer(graph, graph.nodes[id], [&](NodeId p) {
        if (std::find(together.begin(), together.end(), p) == together.end()) visit(p);
      });
    }
  };
  each_producer([&](NodeId p) {
    level = std::max(level, LevelAfter(std::get<0>(places[p]), on_engine[p], engine));
  });
  if (engine) return {level, 0, 0};
  int changes = 0;
  each_producer([&](NodeId p) {
    auto [p_level, p_changes, p_class] = places[p];
    if (p_level != level) return;
    if (opset_class == 0 && p_changes >= changes) opset_class = p_class;  // 0 fits every class
    bool change = p_class != 0 && p_class != opset_class;
    changes = std::max(changes, p_changes + (change ? 1 : 0));
  });
  return {level, changes, opset_class};
}

// Finds the inputs and outputs of the segment, in the order of their first use.
void FindPorts(const GraphView& view, const std::vector<int>& segment_of, int self,
               Segment& segment) {
  const Graph& graph = view.graph;
  absl::flat_hash_set<ValueId> seen;
  for (NodeId id : segment.nodes) {
    const Node& node = graph.nodes[id];
    for (const std::vector<ValueId>* list : {&node.inputs, &node.captures}) {
      for (ValueId v : *list) {
        if (v == kNone || graph.values[v].constant) continue;
        NodeId producer = graph.values[v].producer;
        bool outside = producer == kNone || segment_of[producer] != self;
        if (outside && seen.insert(v).second) segment.inputs.push_back(v);
      }
    }
    for (ValueId v : node.outputs) {
      if (v == kNone) continue;
      bool read_outside = view.is_output[v] ||
                          std::any_of(view.consumers[v].begin(), view.consumers[v].end(),
                                      [&](NodeId reader) { return segment_of[reader] != self; });
      if (read_outside) segment.outputs.push_back(v);
    }
  }
}

}  // namespace

std::vector<Segment> MakeSegments(const GraphView& view, absl::Span<const int> opset_classes,
                                  const std::vector<Cover>& covers) {
  const Graph& graph = view.graph;
  std::vector<Place> places(graph.nodes.size());
  std::vector<bool> on_engine(graph.nodes.size());
  std::vector<const Cover*> whole(graph.nodes.size());  // the engine cover of each node, or null
  for (const Cover& cover : covers) {
    for (NodeId id : cover.nodes) {
      on_engine[id] = cover.verdict.accepted;
      if (cover.verdict.accepted) whole[id] = &cover;
    }
  }
  std::map<Place, int> order;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const absl::Span<const NodeId> together =
        whole[id] != nullptr ? absl::MakeConstSpan(whole[id]->nodes) : absl::MakeConstSpan(&id, 1);
    if (id != together.back()) continue;  // the anchor comes last and sees all producers
    const Place place = PlaceOf(view, together, opset_classes[id], on_engine, places);
    for (NodeId member : together) places[member] = place;
    order.emplace(place, 0);
  }
  int count = 0;
  for (auto& [place, index] : order) index = count++;
  std::vector<Segment> segments(count);
  std::vector<int> segment_of(graph.nodes.size());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    segment_of[id] = order[places[id]];
    Segment& segment = segments[segment_of[id]];
    segment.placement = on_engine[id] ? Placement::kEngine : Placement::kCpu;
    segment.nodes.push_back(id);
  }
  for (int i = 0; i < count; ++i) FindPorts(view, segment_of, i, segments[i]);
  return segments;
}

ValueId NamingOutput(const Node& node) {
  auto made = std::find_if(node.outputs.begin(), node.outputs.end(),
                           [](ValueId id) { return id != kNone; });
  return made == node.outputs.end() ? kNone : *made;
}

std::string UnitName(const GraphView& view, const Cover& cover, size_t i) {
  const ValueId named_after = NamingOutput(view.graph.nodes[cover.nodes.back()]);
  const bool is_last = i + 1 == cover.lowered->network.units.size();
  return absl::StrCat(view.graph.values[named_after].name, is_last ? "" : absl::StrCat("#", i));
}

void JoinNetwork(const GraphView& view, absl::Span<const Cover* const> covers, Segment& segment) {
  Network& network = segment.network;
  absl::flat_hash_map<ValueId, Operand> made;
  segment.inputs.clear();  // units may read fewer values than the nodes
  for (const Cover* cover : covers) {
    const Network& part = cover->lowered->network;
    std::vector<Operand> ports;
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      ValueId value = cover->lowered->inputs[i];
      auto [it, is_new] = made.try_emplace(
          value, Operand{Operand::Source::kInput, static_cast<int>(network.inputs.size())});
      if (is_new) {
        network.inputs.push_back(part.inputs[i]);
        segment.inputs.push_back(value);
      }
      ports.push_back(it->second);
    }
    int first_constant = static_cast<int>(network.constants.size());
    int first_unit = static_cast<int>(network.units.size());
    auto moved = [&](const Operand& o) {
      if (o.source == Operand::Source::kInput) return ports[o.index];
      int base = o.source == Operand::Source::kConstant ? first_constant : first_unit;
      return Operand{o.source, base + o.index};
    };
    network.constants.insert(network.constants.end(), part.constants.begin(), part.constants.end());
    for (size_t i = 0; i < part.units.size(); ++i) {
      Unit unit = part.units[i];
      for (Operand& o : unit.bottoms) o = moved(o);
      unit.name = UnitName(view, *cover, i);
      network.units.push_back(std::move(unit));
    }
    for (size_t i = 0; i < part.outputs.size(); ++i) {
      made[cover->lowered->outputs[i]] = moved(part.outputs[i].from);
    }
  }
  for (ValueId value : segment.outputs) {
    network.outputs.push_back({view.graph.values[value].name, made.at(value)});
  }
  CleanUp(network);
}

}  // namespace anemone
