#include "partitioner/bodies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/infer/trips.h"
#include "importer/row_writes.h"
#include "partitioner/macs.h"

namespace anemone {
namespace {

// An upper bound on MACs: loops may be nested, and sums must not overflow.
constexpr int64_t kMostMacs = int64_t{1} << 50;

std::optional<int64_t> Times(std::optional<int64_t> macs, int64_t trips) {
  if (trips == 0) return 0;
  if (!macs) return std::nullopt;
  return *macs <= kMostMacs / trips ? *macs * trips : kMostMacs;
}

int64_t TripsForMacs(const Graph& graph, const Node& node) {
  return TripsOf(graph, node).value_or(1);
}

bool IsIf(const Node& node) {
  if (!node.domain.empty() || node.op_type != "If") return false;
  for (const char* name : {"then_branch", "else_branch"}) {
    const Attribute* attribute = node.FindAttribute(name);
    if (attribute == nullptr) return false;
    const auto* branch = std::get_if<Attribute::GraphPtr>(&attribute->value);
    if (branch == nullptr || !(*branch)->inputs.empty()) return false;
    if ((*branch)->outputs.size() != node.outputs.size()) return false;
  }
  return HasInput(node, 0) && BodiesOf(node).size() == 2;
}

// By origin (node of the file): the number of graph nodes that have it.
std::vector<int> CountOrigins(size_t origins, const Graph& graph) {
  std::vector<int> count(origins);
  for (const Node& node : graph.nodes) {
    for (OriginId id : node.origins) ++count[id];
  }
  return count;
}

// Ensures that the entries in a node's bodies share no origin with other entries.
class OriginSeparator {
 public:
  // `count`: CountOrigins() of the graph that the node is in.
  OriginSeparator(const std::vector<int>& count, const Node& node, OriginId own)
      : own_(own), taken_(count) {
    for (OriginId id : node.origins) --taken_[id];
    taken_[own] = 1;
  }

  // Removes the node's own origin from entries on the CPU, since they are placed like the node.
  // Returns false if an entry shares an origin with a node outside or with another entry.
  bool Separate(Plan& plan) {
    for (PlanEntry& entry : plan.entries) {
      if (entry.placement == Placement::kCpu) {
        entry.origins.erase(std::remove(entry.origins.begin(), entry.origins.end(), own_),
                            entry.origins.end());
      }
      for (OriginId id : entry.origins) {
        if (std::exchange(taken_[id], 1) != 0) return false;
      }
    }
    plan.entries.erase(std::remove_if(plan.entries.begin(), plan.entries.end(),
                                      [](const PlanEntry& entry) { return entry.origins.empty(); }),
                       plan.entries.end());
    return std::all_of(plan.segments.begin(), plan.segments.end(),
                       [&](Segment& segment) { return Separate(segment.bodies); });
  }

  bool Separate(std::vector<PlannedBody>& bodies) {
    return std::all_of(bodies.begin(), bodies.end(),
                       [&](PlannedBody& body) { return Separate(body.plan); });
  }

 private:
  OriginId own_;
  std::vector<int> taken_;  // by origin: nodes or entries seen so far that have it
};

void MultiplyMacs(int64_t trips, Plan& plan) {
  for (PlanEntry& entry : plan.entries) entry.macs = Times(entry.macs, trips);
  for (Segment& segment : plan.segments) {
    for (PlannedBody& body : segment.bodies) MultiplyMacs(trips, body.plan);
  }
}

// True if a unit on the engine does more than pass a value on.
bool Computes(const Graph& body, const Plan& plan) {
  for (const PlanPart& part : PartsOf(body, plan)) {
    for (const Segment& segment : part.plan->segments) {
      const std::vector<Unit>& units = segment.network.units;
      const auto is_view = [](const Unit& unit) { return unit.kind->run.is_view; };
      if (!std::all_of(units.begin(), units.end(), is_view)) return true;
    }
  }
  return false;
}

// Empty if ONNX Runtime runs the whole node.
std::vector<PlannedBody> PlanBodiesOf(const Graph& graph, const Node& node,
                                      PlanOneGraph plan_graph) {
  if (!IsIf(node) && LoopBodyOf(node) == nullptr) return {};
  const std::vector<Attribute::GraphPtr> graphs = BodiesOf(node);
  // A segment cannot take an optional without a value.
  const auto has_optionals = [](const auto& body) { return HasOptionalPorts(*body); };
  if (std::any_of(graphs.begin(), graphs.end(), has_optionals)) return {};
  std::vector<PlannedBody> bodies;
  bool computes = false;
  for (const Attribute::GraphPtr& body : graphs) {
    absl::StatusOr<Plan> plan = plan_graph(*body);
    if (!plan.ok()) return {};  // it may be a branch that is never taken
    computes |= Computes(*body, *plan);
    bodies.push_back({body, *std::move(plan)});
  }
  if (!computes) return {};
  const int64_t trips = TripsForMacs(graph, node);
  for (PlannedBody& body : bodies) MultiplyMacs(trips, body.plan);
  return bodies;
}

Verdict RunHere(const std::vector<PlannedBody>& bodies) {
  int engine = 0;
  size_t all = 0;
  for (const PlannedBody& body : bodies) {
    for (const PlanPart& part : PartsOf(*body.graph, body.plan)) {
      all += part.plan->entries.size();
      for (const PlanEntry& entry : part.plan->entries) {
        engine += entry.placement == Placement::kEngine;
      }
    }
  }
  return OwnRefusal(Layer::kCoverage, "body-run-by-anemone",
                    absl::StrCat("Anemone runs its bodies; ", engine, " of their ", all,
                                 " nodes are on the engine"),
                    "no action needed: the nodes of the bodies have their own reasons");
}

}  // namespace

BodiesByNode PlanBodies(const Model& model, const Graph& graph, PlanOneGraph plan_graph) {
  BodiesByNode planned;
  std::vector<int> count;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    std::vector<PlannedBody> bodies = PlanBodiesOf(graph, node, plan_graph);
    if (bodies.empty()) continue;
    if (count.empty()) count = CountOrigins(model.origins.size(), graph);
    OriginSeparator separator(count, node, NamingOrigin(model, node));
    if (separator.Separate(bodies)) planned.emplace(id, std::move(bodies));
  }
  return planned;
}

void SetApart(const Graph& graph, const BodiesByNode& bodies, std::vector<Cover>& covers,
              std::vector<int>& opset_classes) {
  const bool writes = std::any_of(graph.nodes.begin(), graph.nodes.end(), WritesRows);
  if (bodies.empty() && !writes) return;
  // Nodes of different classes never share a segment. Class 0 may share one with any class.
  int next = 1 + *std::max_element(opset_classes.begin(), opset_classes.end());
  std::replace(opset_classes.begin(), opset_classes.end(), 0, next);
  const int writing = ++next;
  for (const auto& [id, planned] : bodies) opset_classes[id] = ++next;
  for (Cover& cover : covers) {
    const NodeId id = cover.nodes.back();
    const auto found = bodies.find(id);
    if (found != bodies.end()) cover.verdict = RunHere(found->second);
    if (!WritesRows(graph.nodes[id])) continue;
    opset_classes[id] = writing;
    cover.verdict = OwnRefusal(Layer::kCoverage, "state-in-place",
                               "the session writes these rows where it keeps the state",
                               "no action needed: nothing else of the state is copied");
  }
}

std::optional<int64_t> BodyMacsOf(const Graph& graph, const Node& node) {
  std::optional<int64_t> macs = 0;
  for (const Attribute::GraphPtr& body : BodiesOf(node)) {
    for (const Node& inner : body->nodes) {
      macs = SumOf(macs, SumOf(KnownMacsOf(*body, inner), BodyMacsOf(*body, inner)));
    }
  }
  return Times(macs, TripsForMacs(graph, node));
}

OriginId NamingOrigin(const Model& model, const Node& node) {
  auto depth = [&](OriginId id) {
    const Origin& origin = model.origins[id];
    const bool is_its_domain = origin.domain == (WritesRows(node) ? "" : node.domain);
    bool own = origin.op_type == node.op_type && is_its_domain;
    return std::count(origin.id.begin(), origin.id.end(), '/') + (own ? 0 : 1000);
  };
  OriginId best = node.origins.back();
  for (OriginId id : node.origins) {
    if (depth(id) < depth(best)) best = id;
  }
  return best;
}

}  // namespace anemone
