#include "provider/ort/claims.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/write/to_onnx.h"
#include "provider/ort/closure.h"

namespace anemone {
namespace {

// The maximum number of plans; in each round more nodes are opaque.
constexpr int kMostRounds = 8;

// The number of the node that an origin ("/#12", "/#12/mask") belongs to, or -1 if it is not in the
// graph.
int NodeOf(const Origin& origin) {
  absl::string_view id = origin.id;
  if (!absl::StartsWith(id, "/#")) return -1;
  id.remove_prefix(2);
  int node = -1;
  return absl::SimpleAtoi(id.substr(0, id.find('/')), &node) ? node : -1;
}

bool IsEngineFloat(const onnx::TypeProto& type) {
  return type.tensor_type().elem_type() == onnx::TensorProto::FLOAT ||
         type.tensor_type().elem_type() == onnx::TensorProto::FLOAT16;
}

NodeWeb WebOf(const HostGraph& graph) {
  NodeWeb web;
  const size_t count = graph.nodes.size();
  web.readers.resize(count);
  web.place.assign(count, kFoldedAway);
  web.is_wanted.resize(count);
  web.hands_on.assign(count, true);
  for (size_t i = 0; i < count; ++i) {
    web.producers.push_back(graph.ProducersOf(static_cast<int>(i)));
    for (int p : web.producers.back()) web.readers[p].push_back(static_cast<int>(i));
    for (const std::string& name : graph.nodes[i].proto.output()) {
      if (!name.empty() && !IsEngineFloat(graph.types.at(name))) web.hands_on[i] = false;
    }
  }
  for (const std::string& name : graph.outputs) {
    if (auto it = graph.producer.find(name); it != graph.producer.end()) {
      web.is_wanted[it->second] = true;
    }
  }
  return web;
}

// True if every output is computed by the segment, or is a constant that is not a string.
bool MakesAll(const onnx::GraphProto& proto, const Fused& fused) {
  const Graph& graph = fused.model.graph;
  const std::vector<ValueId>& made = fused.plan.segments.front().outputs;
  for (int i = 0; i < proto.output_size(); ++i) {
    const ValueId id = graph.outputs[i];
    const Value& value = graph.values[id];
    const bool is_known = value.constant && value.type != DataType::kString;
    const bool is_made = std::find(made.begin(), made.end(), id) != made.end();
    if (value.name != proto.output(i).name() || (!is_known && !is_made)) return false;
  }
  return true;
}

class Claimer {
 public:
  Claimer(const HostGraph& graph, const PlanOptions& options, int min_segment_nodes,
          const ImportOptions& importing)
      : graph_(graph),
        options_(options),
        min_segment_nodes_(min_segment_nodes),
        importing_(importing),
        web_(WebOf(graph)) {}

  absl::StatusOr<HostPlan> Claim() {
    for (int round = 1;; ++round) {
      ANEMONE_RETURN_IF_ERROR(MakePlan());
      const bool last = round == kMostRounds;
      if (PlaceNodes(last) && CloseSegments(last)) break;
    }
    ANEMONE_RETURN_IF_ERROR(TakeSets());
    return std::move(made_);
  }

 private:
  absl::Status MakePlan() {
    const auto skeleton = MakeSkeleton(graph_, graph_.AllNodes(), opaque_, {});
    ANEMONE_ASSIGN_OR_RETURN(made_.model,
                             ImportSkeleton(*skeleton, "ONNX Runtime's graph", importing_));
    made_.model.path = graph_.path;
    ANEMONE_ASSIGN_OR_RETURN(made_.plan, anemone::MakePlan(made_.model, options_));
    return absl::OkStatus();
  }

  // Sets the placement of each node. Returns false if parts of a node are placed differently; the
  // node is then opaque in the next round.
  bool PlaceNodes(bool last) {
    const size_t opaque_before = opaque_.size();
    web_.place.assign(web_.size(), kFoldedAway);
    for (const PlanEntry& entry : made_.plan.entries) {
      if (entry.placement == Placement::kFolded) continue;
      const int place = entry.placement == Placement::kEngine ? entry.segment : kOnCpu;
      for (OriginId origin : entry.origins) {
        const int node = NodeOf(made_.model.origins[origin]);
        if (node < 0) continue;
        int& known = web_.place[node];
        if (known != kFoldedAway && known != place) opaque_.insert(node);
        known = known == kFoldedAway || known == place ? place : kOnCpu;
      }
    }
    return last || opaque_.size() == opaque_before;
  }

  // Finds the set of each engine segment. Returns false if folded nodes hide dependencies; they are
  // then opaque in the next round.
  bool CloseSegments(bool last) {
    sets_.clear();
    std::vector<bool> taken(web_.size());
    std::vector<int> hiding;
    const int segments = static_cast<int>(made_.plan.segments.size());
    for (int segment = 0; segment < segments; ++segment) {
      if (made_.plan.segments[segment].placement != Placement::kEngine) continue;
      FusibleSet set = CloseSegment(web_, segment, taken);
      hiding.insert(hiding.end(), set.hiding.begin(), set.hiding.end());
      if (set.blocked) {
        Refuse(segment,
               "ONNX Runtime cannot fuse its nodes: nodes that are not in the segment are between "
               "them");
        continue;
      }
      for (int i : set.nodes) taken[i] = true;
      sets_.emplace_back(segment, std::move(set));
    }
    BreakRings(hiding);
    if (hiding.empty() || last) return true;
    opaque_.insert(hiding.begin(), hiding.end());
    return false;
  }

  void BreakRings(std::vector<int>& hiding) {
    while (!sets_.empty()) {
      std::vector<FusibleSet> all;
      for (const auto& [segment, set] : sets_) all.push_back(set);
      const FusibleSet ring = FindRing(web_, all);
      hiding.insert(hiding.end(), ring.hiding.begin(), ring.hiding.end());
      if (!ring.blocked) return;
      const auto on_ring = [&](const auto& entry) {
        return std::binary_search(ring.nodes.begin(), ring.nodes.end(), entry.second.nodes.front());
      };
      const auto last = std::find_if(sets_.rbegin(), sets_.rend(), on_ring);
      Refuse(last->first, "ONNX Runtime cannot fuse its nodes: another segment is between them");
      sets_.erase(std::next(last).base());
    }
  }

  // Finds the constants that the sets read from folded nodes outside the sets (other nodes read
  // them too). The plan's Graph has dropped most of them, so the model is imported again with all
  // of them as outputs.
  absl::Status FindConstants() {
    std::set<std::string> wanted;
    for (const auto& [segment, set] : sets_) {
      for (int i : set.nodes) {
        for (const std::string& name : graph_.nodes[i].proto.input()) {
          const auto it = graph_.producer.find(name);
          if (it == graph_.producer.end() || web_.place[it->second] != kFoldedAway) continue;
          if (!std::binary_search(set.nodes.begin(), set.nodes.end(), it->second)) {
            wanted.insert(name);
          }
        }
      }
    }
    if (wanted.empty()) return absl::OkStatus();
    const auto skeleton = MakeSkeleton(graph_, graph_.AllNodes(), opaque_, {});
    onnx::GraphProto& proto = *skeleton->proto.mutable_graph();
    absl::flat_hash_set<std::string> listed;
    for (const onnx::ValueInfoProto& output : proto.output()) listed.insert(output.name());
    for (const std::string& name : wanted) {
      if (listed.insert(name).second) proto.add_output()->set_name(name);
    }
    ANEMONE_ASSIGN_OR_RETURN(const Model model,
                             ImportSkeleton(*skeleton, "ONNX Runtime's graph", importing_));
    for (ValueId id : model.graph.outputs) {
      const Value& value = model.graph.values[id];
      if (value.constant && value.type != DataType::kString && wanted.count(value.name) > 0) {
        constants_[value.name] = *value.constant;
      }
    }
    return absl::OkStatus();
  }

  absl::Status TakeSets() {
    ANEMONE_RETURN_IF_ERROR(FindConstants());
    for (const Value& value : made_.model.graph.values) values_[value.name] = &value;
    for (auto& [segment, set] : sets_) {
      const auto least = static_cast<size_t>(min_segment_nodes_);
      if (set.nodes.size() < least) {
        Refuse(segment,
               absl::StrCat("its segment has ", set.nodes.size(),
                            " nodes, and min_segment_nodes is ", least),
               Layer::kPolicy, "min-segment-nodes", "lower min_segment_nodes");
        continue;
      }
      std::vector<int> needed;
      std::set_difference(set.nodes.begin(), set.nodes.end(), set.optional.begin(),
                          set.optional.end(), std::back_inserter(needed));
      KnownValues inputs = InputsOf(set.nodes);
      absl::Status status = CheckFused(set.nodes, inputs);
      if (!status.ok() && !set.optional.empty()) {
        set.nodes = needed;
        inputs = InputsOf(set.nodes);
        status = CheckFused(set.nodes, inputs);
      }
      if (!status.ok()) {
        Refuse(segment, std::string(status.message()));
        continue;
      }
      made_.claims.push_back({segment, set.nodes, std::move(inputs)});
    }
    return absl::OkStatus();
  }

  // If the set has all nodes and none is opaque, the plan of the whole graph has been checked.
  absl::Status CheckFused(const std::vector<int>& nodes, const KnownValues& inputs) const {
    if (static_cast<int>(nodes.size()) == web_.size() && opaque_.empty()) return absl::OkStatus();
    return PlanFused(graph_, nodes, inputs, options_, importing_).status();
  }

  KnownValues InputsOf(const std::vector<int>& nodes) const {
    KnownValues known;
    const auto skeleton = MakeSkeleton(graph_, nodes, {}, {});
    for (const onnx::ValueInfoProto& input : skeleton->proto.graph().input()) {
      const std::string& name = input.name();
      if (auto it = constants_.find(name); it != constants_.end()) known.constants.insert(*it);
      const auto value = values_.find(name);
      if (value != values_.end() && value->second->is_static()) {
        known.types[name] = TypeOf(*value->second);
      }
    }
    return known;
  }

  void Refuse(int segment, std::string message, Layer layer = Layer::kCoverage,
              absl::string_view rule = "not-fused",
              std::string remedy =
                  "no action needed: the nodes run on the CPU; a session of "
                  "Anemone itself runs the segment on the engine") {
    Plan& plan = made_.plan;
    const Verdict verdict = OwnRefusal(layer, rule, std::move(message), std::move(remedy));
    plan.segments[segment].placement = Placement::kCpu;
    for (PlanEntry& entry : plan.entries) {
      if (entry.segment != segment || entry.placement != Placement::kEngine) continue;
      entry.placement = Placement::kCpu;
      entry.verdict = verdict;
    }
  }

  const HostGraph& graph_;
  const PlanOptions& options_;
  const int min_segment_nodes_;
  const ImportOptions& importing_;
  NodeWeb web_;
  std::set<int> opaque_;
  HostPlan made_;
  absl::flat_hash_map<std::string, const Value*> values_;  // of the model, by name
  std::map<std::string, Tensor> constants_;       // results of folded nodes outside the sets
  std::vector<std::pair<int, FusibleSet>> sets_;  // by segment
};

}  // namespace

absl::StatusOr<HostPlan> PlanHostGraph(const HostGraph& graph, const PlanOptions& options,
                                       int min_segment_nodes, const ImportOptions& importing) {
  return Claimer(graph, options, min_segment_nodes, importing).Claim();
}

absl::StatusOr<Fused> PlanFused(const HostGraph& graph, const std::vector<int>& nodes,
                                const KnownValues& inputs, const PlanOptions& options,
                                const ImportOptions& importing) {
  Fused fused;
  const auto skeleton = MakeSkeleton(graph, nodes, {}, inputs);
  ANEMONE_ASSIGN_OR_RETURN(fused.model,
                           ImportSkeleton(*skeleton, "a fused part of the graph", importing));
  PlanOptions most = options;  // the plan of the whole graph has given up what its policy gives up
  most.policy.aim = Policy::Aim::kMaxEngine;
  ANEMONE_ASSIGN_OR_RETURN(fused.plan, MakePlan(fused.model, most));
  const bool is_one = fused.plan.segments.size() == 1 && fused.plan.engine_segments() == 1;
  if (is_one && MakesAll(skeleton->proto.graph(), fused)) return fused;
  std::string why = "it has several segments";
  for (const PlanEntry& entry : fused.plan.entries) {
    if (entry.placement != Placement::kCpu) continue;
    why = absl::StrCat(NodeLabel(fused.model, fused.model.graph.nodes[entry.nodes.back()]), ": ",
                       entry.verdict.message);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the nodes of the segment alone are not one engine segment: ", why));
}

}  // namespace anemone
