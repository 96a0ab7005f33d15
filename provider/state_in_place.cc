#include "provider/state_in_place.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/row_writes.h"
#include "provider/ports.h"
#include "provider/state_pairs.h"

namespace anemone {
namespace {

bool HasWrites(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), WritesRows);
}

// The pairs of values; none if one does not fit this size of the model. An output that is the
// next value of several inputs cannot be one's memory.
std::vector<StateValues> StatesOf(const std::map<std::string, std::string>& state,
                                  const Graph& graph) {
  std::vector<PortInfo> inputs, outputs;
  for (const ValueId v : graph.inputs) inputs.push_back(PortOf(graph, v));
  for (const ValueId v : graph.outputs) outputs.push_back(PortOf(graph, v));
  const auto pairs = FindStatePairs(state, graph, inputs, outputs);
  if (!pairs.ok()) return {};
  std::map<ValueId, int> uses;
  for (const StatePair& pair : *pairs) ++uses[graph.outputs[pair.output]];
  std::vector<StateValues> states;
  for (const StatePair& pair : *pairs) {
    const ValueId present = graph.outputs[pair.output];
    const auto listed = std::count(graph.outputs.begin(), graph.outputs.end(), present);
    if (uses[present] == 1 && listed == 1) states.push_back({graph.inputs[pair.input], present});
  }
  return states;
}

// Why a state of the plan cannot stay in a surface of the engine; "" if all can.
std::string LeavesTheEngine(const Model& model, const Plan& plan) {
  const Graph& graph = model.graph;
  for (const Node& write : graph.nodes) {
    if (!WritesRows(write)) continue;
    const ValueId present = write.outputs[0];
    bool on_engine = false;
    for (const Segment& segment : plan.segments) {
      if (std::count(segment.inputs.begin(), segment.inputs.end(), present) == 0) continue;
      if (segment.placement == Placement::kEngine) {
        on_engine = true;
        continue;
      }
      const auto reader = std::find_if(segment.nodes.begin(), segment.nodes.end(), [&](NodeId id) {
        const Node& node = graph.nodes[id];
        return std::count(node.inputs.begin(), node.inputs.end(), present) > 0 ||
               std::count(node.captures.begin(), node.captures.end(), present) > 0;
      });
      return absl::StrCat("'", graph.values[present].name, "' is read on the CPU, by ",
                          NodeLabel(model, graph.nodes[*reader]));
    }
    if (!on_engine) {
      return absl::StrCat("'", graph.values[present].name, "' is not read by the engine");
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<PlanInPlace> PlanStateInPlace(
    const LoadSetup& setup, Model& model,
    const std::function<absl::StatusOr<Plan>(const Model& model)>& plan) {
  PlanInPlace made;
  const Settings& settings = setup.settings;
  // Of buckets, values are cropped; hazards are looked for without a state.
  if (!setup.state_in_place.empty() && settings.buckets.empty() && !settings.hazards) {
    Graph before = model.graph;
    made.refusal = WriteRowsInPlace(StatesOf(setup.state_in_place, before), model);
    if (HasWrites(model.graph)) {
      ANEMONE_ASSIGN_OR_RETURN(made.plan, plan(model));
      const std::string why = LeavesTheEngine(model, made.plan);
      if (why.empty()) return made;
      made.refusal = why;
    }
    model.graph = std::move(before);
  }
  ANEMONE_ASSIGN_OR_RETURN(made.plan, plan(model));
  return made;
}

}  // namespace anemone
