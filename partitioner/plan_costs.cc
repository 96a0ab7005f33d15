#include "partitioner/plan_costs.h"

#include <algorithm>

#include "partitioner/macs.h"

namespace anemone {
namespace {

// The bytes of a value on the CPU; nullopt if its size is not known.
std::optional<double> BytesOnCpu(const Value& value) {
  if (value.constant)
    return static_cast<double>(value.constant->elements()) * BitsOf(value.type) / 8;
  if (!value.is_static()) return std::nullopt;
  double bytes = BitsOf(value.type) / 8.0;
  for (int64_t dim : value.dims()) bytes *= static_cast<double>(dim);
  return bytes;
}

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
        const auto us = CpuMicroseconds(*part.graph, part.graph->nodes[id], *costs_.rates);
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

std::optional<double> CpuMicroseconds(const Graph& graph, const Node& node,
                                      const CostRates& rates) {
  if (rates.cpu_flops == 0) return std::nullopt;
  const std::optional<int64_t> macs = KnownMacsOf(graph, node);
  if (!macs) return std::nullopt;
  double bytes = 0;
  for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
    for (ValueId value : *values) {
      if (value == kNone) continue;
      const std::optional<double> size = BytesOnCpu(graph.values[value]);
      if (!size) return std::nullopt;
      bytes += *size;
    }
  }
  return 1e6 * std::max(2 * static_cast<double>(*macs) / rates.cpu_flops,
                        bytes / rates.cpu_bytes_per_second);
}

PlanCosts CostsOf(const Model& model, const Plan& plan, const UnitNames& names) {
  PlanCosts costs{.rates = FindCostRates(*plan.target)};
  if (costs.rates == nullptr) return costs;
  costs.estimate_us = costs.cpu_us = 0;
  Adder adder(model, plan, names, costs);
  for (const PlanPart& part : PartsOf(model.graph, plan)) adder.Add(part);
  return costs;
}

}  // namespace anemone
