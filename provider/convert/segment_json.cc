#include "provider/convert/segment_json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "partitioner/plan_json.h"

namespace anemone {

Json PortsJson(const Graph& graph, const std::vector<ValueId>& values) {
  Json ports = Json::array();
  for (ValueId id : values) {
    const Value& value = graph.values[id];
    ports.push_back({{"name", value.name},
                     {"dtype", std::string(DataTypeName(value.type))},
                     {"shape", value.is_static() ? Json(value.dims()) : Json(nullptr)}});
  }
  return ports;
}

Json CpuReasonsJson(const Model& model, const Plan& plan, int segment,
                    const std::function<bool(const PlanEntry&)>& is_left_out) {
  Json reasons = Json::array();
  for (const PlanEntry& entry : plan.entries) {
    if (entry.segment != segment || (is_left_out && is_left_out(entry))) continue;
    Json reason = {{"op_type", model.origins[entry.shown].op_type}};
    AddReason(entry, reason);
    const bool has_bodies = !BodiesOf(model.graph.nodes[entry.nodes.back()]).empty();
    if (has_bodies)
      reason["remedy"] = "this format has no control flow; convert its bodies as separate models";
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(std::move(reason));
    }
  }
  return reasons;
}

}  // namespace anemone
