#include "partitioner/unit_names.h"

#include "partitioner/segments.h"

namespace anemone {

UnitNames::UnitNames(const Model& model, const Plan& plan) : model_(model) {
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part.plan->entries) {
      if (entry.placement != Placement::kEngine) continue;
      for (NodeId id : entry.nodes) {
        const ValueId made = NamingOutput(part.graph->nodes[id]);
        if (made != kNone) origin_of_[part.graph->values[made].name] = entry.shown;
      }
    }
  }
}

const Origin* UnitNames::Find(absl::string_view unit) const {
  const auto found = FindByUnitName(origin_of_, unit);
  return found == origin_of_.end() ? nullptr : &model_.origins[found->second];
}

}  // namespace anemone
