#include "partitioner/plan_costs.h"

#include "partitioner/cpu_costs.h"
#include "partitioner/macs.h"

namespace anemone {
namespace {

class Adder {
 public:
  Adder(const Model& model, const Plan& plan, const UnitNames& names, PlanCosts& costs)
      : names_(names), origins_(model.origins.data()), target_(*plan.target), costs_(costs) {}

  void Add(const PlanPart& part) {
    for (size_t i = 0; i < part.plan->segments.size(); ++i) {
      const Segment& segment = part.plan->segments[i];
      if (segment.placement == Placement::kEngine) {
        AddEngine(segment, part.plan->first_segment + static_cast<int>(i));
      }
      for (NodeId id : segment.nodes) {
        // Of a node with planned bodies, the bodies are parts of their own.
        if (!segment.bodies.empty()) continue;
        const auto us = CpuMicroseconds(*part.graph, part.graph->nodes[id], costs_.rates->cpu);
        costs_.cpu_us = SumOf(costs_.cpu_us, us);
        if (segment.placement == Placement::kCpu)
          costs_.estimate_us = SumOf(costs_.estimate_us, us);
      }
    }
  }

 private:
  void AddEngine(const Segment& segment, int number) {
    const NetworkCost cost = *CostOf(segment.network, target_);
    costs_.of_segments[number] = {cost.us, cost.limit};
    costs_.transfer_us += cost.transfer_us;
    costs_.estimate_us = SumOf(costs_.estimate_us, std::optional(cost.us));
    for (size_t i = 0; i < cost.units.size(); ++i) {
      const Origin* origin = names_.Find(segment.network.units[i].name);
      if (origin == nullptr) continue;
      const auto id = static_cast<OriginId>(origin - origins_);
      Cost& longest = longest_[id];
      if (cost.units[i].us >= longest.us) longest = cost.units[i];
      Cost& entry = costs_.of_entries[id];
      entry = {entry.us + cost.units[i].us, longest.limit};
    }
  }

  const UnitNames& names_;
  const Origin* const origins_;
  const Target& target_;
  PlanCosts& costs_;
  std::map<OriginId, Cost> longest_;  // the longest unit of each entry
};

}  // namespace

PlanCosts CostsOf(const Model& model, const Plan& plan, const UnitNames& names) {
  PlanCosts costs{.rates = FindCostRates(*plan.target)};
  if (costs.rates == nullptr) return costs;
  costs.estimate_us = costs.cpu_us = 0;
  Adder adder(model, plan, names, costs);
  for (const PlanPart& part : PartsOf(model.graph, plan)) adder.Add(part);
  return costs;
}

}  // namespace anemone
