#include "partitioner/plan_warnings.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/warning.h"
#include "kernels/fp16_range.h"
#include "kernels/layout/channels_first.h"
#include "partitioner/bodies.h"
#include "partitioner/data_sizes.h"
#include "partitioner/unit_names.h"
#include "warning_table.h"  // generated

namespace anemone {
namespace {

// Says of each linear layer that was kept why. Where products are asked for, there is nothing to
// say.
void AddReasons(const Segment& segment, const PlanOptions& options,
                std::vector<Warning>& warnings) {
  if (!options.convolves_layers) {
    const auto is_layer = [](const Warning& w) { return w.rule == &warning::kLinearAsConvolution; };
    warnings.erase(std::remove_if(warnings.begin(), warnings.end(), is_layer), warnings.end());
  }
  if (segment.kept.empty()) return;
  absl::flat_hash_map<absl::string_view, absl::string_view> whys;
  for (const KeptLayer& layer : segment.kept) whys.emplace(layer.unit, layer.why);
  for (Warning& w : warnings) {
    if (w.rule != &warning::kLinearAsConvolution && w.rule != &warning::kWidthGranule) continue;
    if (w.unit < 0) continue;
    const auto why = whys.find(segment.network.units[w.unit].name);
    if (why != whys.end() && !why->second.empty()) absl::StrAppend(&w.message, "; ", why->second);
  }
}

// A lowering failed though the model is valid.
PlanWarning FaultWarning(const Model& model, OriginId origin, const Verdict& verdict) {
  return {kLoweringFault,
          model.origins[origin].id,
          absl::StrCat("this is a fault of Anemone: ", verdict.message),
          verdict.own_remedy,
          "",
          origin};
}

}  // namespace

void AddImportWarnings(const Model& model, Plan& plan) {
  if (model.warnings.empty()) return;
  absl::flat_hash_map<absl::string_view, OriginId> by_id;
  for (size_t i = 0; i < model.origins.size(); ++i) {
    by_id.emplace(model.origins[i].id, static_cast<OriginId>(i));
  }
  for (const ImportWarning& w : model.warnings) {
    const auto origin = by_id.find(w.where);
    plan.warnings.push_back(
        {w.rule, w.where, w.message, w.remedy, "", origin == by_id.end() ? kNone : origin->second});
  }
}

std::vector<PlanWarning> DesignWarnings(const Model& model, const UnitNames& names,
                                        const PlanOptions& options, const Plan& plan) {
  std::vector<PlanWarning> all;
  std::set<std::tuple<const WarningRule*, OriginId, std::string>> told;
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    std::vector<bool> in_doubt(part.plan->segments.size());
    for (const PlanEntry& entry : part.plan->entries) {
      if (entry.segment >= 0 && entry.verdict.doubt != nullptr) in_doubt[entry.segment] = true;
    }
    for (size_t i = 0; i < part.plan->segments.size(); ++i) {
      const Network& network = part.plan->segments[i].network;
      std::vector<Warning> warnings = WarningsOf(network, in_doubt[i], *plan.target, plan.route);
      AddReasons(part.plan->segments[i], options, warnings);
      for (Warning& w : warnings) {
        const Origin* origin = w.unit < 0 ? nullptr : names.Find(network.units[w.unit].name);
        const OriginId id =
            origin == nullptr ? kNone : static_cast<OriginId>(origin - model.origins.data());
        // A node that became many units is warned of once.
        const bool is_new =
            id == kNone || told.emplace(w.rule, id, w.rule->of_kind ? w.message : "").second;
        if (!is_new) continue;
        all.push_back({w.id(),
                       origin ? origin->id : absl::StrCat("segment ", part.plan->first_segment + i),
                       std::move(w.message), w.remedy(), w.source(), id, w.rule->of_kind});
      }
    }
  }
  return all;
}

void AddFaults(const Model& model, const Graph& graph, const std::vector<Cover>& covers,
               Plan& plan) {
  for (const Cover& cover : covers) {
    if (cover.verdict.own_rule != kLoweringFault) continue;
    const OriginId origin = NamingOrigin(model, graph.nodes[cover.nodes.back()]);
    plan.warnings.push_back(FaultWarning(model, origin, cover.verdict));
  }
}

void AddVanishing(const Model& model, const GraphView& view, const std::vector<Cover>& covers,
                  Plan& plan) {
  std::set<OriginId> told;
  for (const Cover& cover : covers) {
    if (!cover.verdict.accepted) continue;
    for (NodeId id : cover.nodes) {
      const Node& node = view.graph.nodes[id];
      const std::optional<VanishingConstant> constant = VanishingOf(view, node);
      const OriginId origin = NamingOrigin(model, node);
      if (!constant || !told.insert(origin).second) continue;
      WarningList list;
      list.Add(warning::kVanishingConstant, constant->name, constant->number);
      const Warning w = std::move(list.Take().front());
      plan.warnings.push_back(
          {w.id(), model.origins[origin].id, w.message, w.remedy(), w.source(), origin});
    }
  }
}

void AddMissed(const Model& model, const Graph& graph, const std::vector<MissedPattern>& missed,
               Plan& plan) {
  for (const MissedPattern& m : missed) {
    if (m.verdict.rule_id() == kSymbolicShape) continue;  // its nodes have that reason
    const OriginId origin = NamingOrigin(model, graph.nodes[m.anchor]);
    const Rule* rule = m.verdict.rule;
    std::string why = m.verdict.message;
    if (const std::string condition = rule == nullptr ? "" : rule->condition; !condition.empty()) {
      why = why.empty() ? condition : absl::StrCat(condition, " (\"", why, "\")");
    }
    if (m.verdict.own_rule == kLoweringFault) {
      plan.warnings.push_back(FaultWarning(model, origin, m.verdict));
      continue;
    }
    const bool has_remedy = rule != nullptr && rule->remedy != nullptr;
    plan.warnings.push_back(
        {"pattern-not-taken", model.origins[origin].id,
         absl::StrCat(m.pattern, " pattern recognized but not fused on this target: ", why),
         has_remedy ? rule->remedy : "no action needed: its nodes are placed one by one",
         rule == nullptr ? "" : rule->source, origin, /*of_kind=*/true});
  }
}

}  // namespace anemone
