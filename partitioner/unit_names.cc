#include "partitioner/unit_names.h"

#include "partitioner/segments.h"

namespace anemone {

UnitNames::UnitNames(const Model& model, const Plan& plan) : model_(model) {
  for (const PlanEntry& entry : plan.entries) {
    if (entry.placement != Placement::kEngine) continue;
    for (NodeId id : entry.nodes) {
      const ValueId made = NamingOutput(model.graph.nodes[id]);
      if (made != kNone) origin_of_[model.graph.values[made].name] = entry.shown;
    }
  }
}

const Origin* UnitNames::Find(absl::string_view unit) const {
  auto found = origin_of_.find(unit.substr(0, unit.rfind('#')));
  if (found == origin_of_.end()) found = origin_of_.find(unit);
  return found == origin_of_.end() ? nullptr : &model_.origins[found->second];
}

}  // namespace anemone
