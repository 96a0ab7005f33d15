// partitioner/plan_costs.h: estimates of the time that a plan takes on the target, for reports.
#ifndef ANEMONE_PARTITIONER_PLAN_COSTS_H_
#define ANEMONE_PARTITIONER_PLAN_COSTS_H_

#include <map>
#include <optional>
#include <vector>

#include "engine/cost.h"
#include "partitioner/plan.h"
#include "partitioner/unit_names.h"

namespace anemone {

struct PlanCosts {
  const CostRates* rates = nullptr;  // null: no rates of the target are published, and all is empty
  std::map<OriginId, Cost> of_entries;  // of engine entries, by PlanEntry::shown; no dispatch
  std::map<int, Cost> of_segments;      // of engine segments, by number
  // The engine segments and, at the rates of the target's CPU, the CPU segments. Nullopt if the
  // rates or the sizes of a CPU segment are not known. Loops are counted once.
  std::optional<double> estimate_us;
  std::optional<double> cpu_us;  // of the whole model on the target's CPU
};
PlanCosts CostsOf(const Model& model, const Plan& plan, const UnitNames& names);

// The time of a node on the target's CPU, without its bodies: the longer of its arithmetic and its
// transfers. Nullopt if the rates or a size are not known.
std::optional<double> CpuMicroseconds(const Graph& graph, const Node& node, const CostRates& rates);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_COSTS_H_
