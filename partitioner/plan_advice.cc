#include "partitioner/plan_advice.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "partitioner/cpu_costs.h"
#include "partitioner/macs.h"
#include "partitioner/plan_costs.h"
#include "partitioner/policies.h"
#include "partitioner/segments.h"

namespace anemone {
namespace {

using Entries = std::vector<const PlanEntry*>;

// One graph of the plan: counts its engine segments if other entries were on the engine too, by the
// levels of partitioner/segments.h.
class PartLevels {
 public:
  explicit PartLevels(const PlanPart& part)
      : graph_(*part.graph), entry_of_(graph_.nodes.size(), nullptr) {
    for (const PlanEntry& entry : part.plan->entries) {
      for (NodeId id : entry.nodes) entry_of_[id] = &entry;
    }
    FindOpen();
  }

  int EngineSegments(const std::set<const PlanEntry*>& accepted) const {
    std::vector<int> levels(graph_.nodes.size());
    std::set<int> used;
    for (NodeId id = 0; id < static_cast<NodeId>(levels.size()); ++id) {
      const PlanEntry* entry = entry_of_[id];
      if (entry == nullptr) continue;
      const bool engine = OnEngine(entry, accepted);
      // All nodes of one cover have the level of the last one.
      const bool together = engine && entry->nodes.size() > 1 && open_.count(entry) == 0;
      if (together && id != entry->nodes.back()) continue;
      int level = LowestLevel(engine);
      const auto raise = [&](NodeId p) {
        if (entry_of_[p] == nullptr || (together && entry_of_[p] == entry)) return;
        level = std::max(level, LevelAfter(levels[p], OnEngine(entry_of_[p], accepted), engine));
      };
      if (together) {
        for (NodeId member : entry->nodes) ForEachProducer(graph_, graph_.nodes[member], raise);
        for (NodeId member : entry->nodes) levels[member] = level;
      } else {
        ForEachProducer(graph_, graph_.nodes[id], raise);
        levels[id] = level;
      }
      if (engine) used.insert(level);
    }
    return static_cast<int>(used.size());
  }

 private:
  static bool OnEngine(const PlanEntry* entry, const std::set<const PlanEntry*>& accepted) {
    return entry->placement == Placement::kEngine || accepted.count(entry) > 0;
  }

  // Finds the entries of which a node before the last one is read outside: they are several covers.
  void FindOpen() {
    const auto read = [&](NodeId producer, const PlanEntry* reader) {
      const PlanEntry* entry = entry_of_[producer];
      if (entry != nullptr && entry != reader && producer != entry->nodes.back()) {
        open_.insert(entry);
      }
    };
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      ForEachProducer(graph_, graph_.nodes[id], [&](NodeId p) { read(p, entry_of_[id]); });
    }
    for (ValueId v : graph_.outputs) {
      if (graph_.values[v].producer != kNone) read(graph_.values[v].producer, nullptr);
    }
  }

  const Graph& graph_;
  std::vector<const PlanEntry*> entry_of_;  // by node
  std::set<const PlanEntry*> open_;
};

// The time that engine segments spend on values that another segment makes or reads, and the time
// that their longest units lose because they are not part of a longer chain.
double MicrosecondsAtBorders(const PlanPart& part, const Target& target, const CostRates& rates) {
  const std::set<ValueId> results(part.graph->outputs.begin(), part.graph->outputs.end());
  double bytes = 0, lost = 0;
  for (const Segment& segment : part.plan->segments) {
    if (segment.placement != Placement::kEngine) continue;
    const Network& network = segment.network;
    for (const Unit& unit : network.units) {
      for (const Operand& operand : unit.bottoms) {
        if (operand.source != Operand::Source::kInput) continue;
        if (part.graph->values[segment.inputs[operand.index]].producer == kNone) continue;
        const InputPort& port = network.inputs[operand.index];
        bytes += static_cast<double>(port.dims.elements() * BytesOf(port.format));
      }
    }
    for (size_t i = 0; i < network.outputs.size(); ++i) {
      const Operand& from = network.outputs[i].from;
      if (from.source != Operand::Source::kUnit || results.count(segment.outputs[i]) > 0) continue;
      bytes += static_cast<double>(network.units[from.index].dims.elements() *
                                   BytesOf(Format::kFloat16));
    }
    double longest = 0;
    const std::optional<NetworkCost> cost = CostOf(network, target);
    for (const Cost& unit : cost->units) longest = std::max(longest, unit.us);
    const double alone = std::min(rates.flops, rates.product_flops);
    lost += longest * std::max(0.0, 1 - alone / rates.chain_flops);
  }
  return bytes / rates.port_bytes_per_second * 1e6 + lost;
}

// Whether the policy `latency` gave the nodes to the CPU: by the estimate, the engine is slower.
bool GaveUp(const Entries& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const PlanEntry* entry) {
    return entry->verdict.own_rule == kLatencyRule;
  });
}

class Gains {
 public:
  Gains(const Model& model, const Plan& plan)
      : model_(model), plan_(plan), rates_(plan.costs == nullptr ? nullptr : plan.costs->rates) {
    for (const PlanPart& part : PartsOf(model.graph, plan)) {
      levels_.emplace_back(part);
      if (rates_ != nullptr) {
        border_us_ += MicrosecondsAtBorders(part, *plan.target, *rates_);
        AddCpuTimes(part);
      }
    }
  }

  PlanGain Of(const Entries& entries) const {
    PlanGain gain{.segments = Segments(entries)};
    std::optional<double> cpu_us = 0;
    for (const PlanEntry* entry : entries) {
      gain.nodes += NodesOf(model_, *entry);
      gain.macs = SumOf(gain.macs, entry->macs);
      const auto found = cpu_us_.find(entry);
      cpu_us = SumOf(cpu_us, found == cpu_us_.end() ? std::nullopt : found->second);
    }
    if (rates_ == nullptr) return gain;
    gain.dispatch_us = (plan_.engine_segments() - gain.segments) * rates_->dispatch_us;
    if (!cpu_us || !gain.macs || !plan_.costs->estimate_us || GaveUp(entries)) return gain;
    const double on_engine = 2e6 * static_cast<double>(*gain.macs) /
                             std::max({rates_->flops, rates_->product_flops, rates_->chain_flops});
    const double saved = *cpu_us + *gain.dispatch_us + border_us_ - on_engine;
    gain.at_most_us = std::clamp(saved, 0.0, *plan_.costs->estimate_us);
    return gain;
  }

 private:
  int Segments(const Entries& entries) const {
    const std::set<const PlanEntry*> accepted(entries.begin(), entries.end());
    int count = 0;
    for (const PartLevels& part : levels_) count += part.EngineSegments(accepted);
    return count;
  }

  void AddCpuTimes(const PlanPart& part) {
    for (const PlanEntry& entry : part.plan->entries) {
      if (entry.placement != Placement::kCpu) continue;
      cpu_us_[&entry] = CpuMicroseconds(*part.graph, entry.nodes, rates_->cpu);
    }
  }

  const Model& model_;
  const Plan& plan_;
  const CostRates* const rates_;
  std::vector<PartLevels> levels_;
  double border_us_ = 0;
  absl::flat_hash_map<const PlanEntry*, std::optional<double>> cpu_us_;  // of those on the CPU
};

// Neither the remedy asks for a change, nor would it bring MACs or fewer segments.
bool IsIdle(const Advice& item, const Plan& plan) {
  if (GaveUp(item.reason.entries)) return true;
  return absl::StartsWith(item.reason.remedy, "no action needed") && item.gain.macs == 0 &&
         item.gain.segments >= plan.engine_segments();
}

}  // namespace

PlanAdvice AdviceOf(const Model& model, const Plan& plan) {
  const Gains gains(model, plan);
  PlanAdvice advice;
  Entries all;
  for (ReasonGroup& reason : ReasonGroupsOf(model, plan, /*every_message=*/false)) {
    all.insert(all.end(), reason.entries.begin(), reason.entries.end());
    Advice& added = advice.items.emplace_back(Advice{std::move(reason), {}});
    if (advice.items.size() <= kMostAdvice) {
      added.gain = gains.Of(added.reason.entries);
    } else {
      added.gain = {added.reason.nodes, added.reason.macs, plan.engine_segments(), std::nullopt,
                    std::nullopt};
    }
  }
  advice.all = gains.Of(all);
  const auto rank = [&](const Advice& item) {
    constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
    return std::tuple(!IsIdle(item, plan), !item.gain.macs, item.gain.at_most_us.value_or(0),
                      item.gain.macs.value_or(kUnknown), -item.gain.segments, item.gain.nodes);
  };
  std::stable_sort(advice.items.begin(), advice.items.end(),
                   [&](const Advice& a, const Advice& b) { return rank(a) > rank(b); });
  return advice;
}

}  // namespace anemone
