#include "partitioner/plan_groups.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "partitioner/cover.h"
#include "partitioner/macs.h"

namespace anemone {
namespace {

std::string SentenceOf(const Verdict& verdict) {
  if (verdict.rule != nullptr) return verdict.rule->condition;
  // The operators are listed in brackets.
  constexpr absl::string_view kNoLowering = "Anemone has no lowering";
  return absl::StartsWith(verdict.message, kNoLowering) ? std::string(kNoLowering)
                                                        : verdict.message;
}

// Two entries with the same key have one reason.
using ReasonKey = std::tuple<std::string, std::string, std::string>;
ReasonKey KeyOf(const PlanEntry& entry, bool every_message) {
  const Verdict& verdict = entry.verdict;
  if (verdict.rule == nullptr) return {verdict.own_rule, SentenceOf(verdict), entry.remedy};
  return {verdict.rule->id, every_message ? verdict.message : "", entry.remedy};
}

}  // namespace

std::vector<PlanRow> RowsOf(const Model& model, const Plan& plan) {
  std::vector<PlanRow> rows;
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part.plan->entries) {
      rows.push_back({&entry, entry.segment < 0 ? -1 : part.plan->first_segment + entry.segment});
    }
  }
  return rows;
}

std::vector<OriginId> NodesShown(const Model& model, const PlanEntry& entry) {
  std::vector<OriginId> nodes;
  for (OriginId origin : entry.origins) {
    if (!model.origins[origin].is_aside) nodes.push_back(origin);
  }
  return nodes.empty() ? std::vector<OriginId>{entry.shown} : nodes;
}

int NodesOf(const Model& model, const PlanEntry& entry) {
  return static_cast<int>(
      std::count_if(entry.origins.begin(), entry.origins.end(),
                    [&](OriginId origin) { return !model.origins[origin].is_aside; }));
}

NodeCounts CountsOf(const Model& model, const Plan& plan) {
  NodeCounts counts;
  std::set<absl::string_view> parts;  // the ids of the nodes that they are parts of
  for (const PlanRow& row : RowsOf(model, plan)) {
    const int nodes = NodesOf(model, *row.entry);
    switch (row.entry->placement) {
      case Placement::kEngine:
        counts.engine += nodes;
        break;
      case Placement::kFolded:
        counts.folded += nodes;
        break;
      case Placement::kCpu:
        counts.cpu += nodes;
        const absl::string_view id = model.origins[row.entry->shown].id;
        if (nodes == 0) parts.insert(id.substr(0, id.rfind('/')));
        break;
    }
  }
  counts.cpu_parts = static_cast<int>(parts.size());
  return counts;
}

const ImportWarning* MissingRuntime(const Model& model) {
  const auto found =
      std::find_if(model.warnings.begin(), model.warnings.end(),
                   [](const ImportWarning& warning) { return warning.rule == kRuntimeMissing; });
  return found == model.warnings.end() ? nullptr : &*found;
}

std::optional<double> KnownShareOf(const Model& model, const Plan& plan) {
  return MissingRuntime(model) == nullptr ? plan.engine_macs_share() : std::nullopt;
}

std::vector<ReasonGroup> ReasonGroupsOf(const Model& model, const Plan& plan, bool every_message) {
  std::map<ReasonKey, size_t> index;
  std::vector<ReasonGroup> groups;
  std::vector<std::map<std::string, int>> operators;
  for (const PlanRow& row : RowsOf(model, plan)) {
    if (row.entry->placement != Placement::kCpu) continue;
    const Verdict& verdict = row.entry->verdict;
    const auto [found, is_new] = index.emplace(KeyOf(*row.entry, every_message), groups.size());
    if (is_new) {
      ReasonGroup& added = groups.emplace_back();
      operators.emplace_back();
      added.verdict = &verdict;
      added.sentence = SentenceOf(verdict);
      if (verdict.rule == nullptr) {
        added.remedy = verdict.own_remedy;
      } else {
        added.quote = verdict.message;
        added.remedy = verdict.rule->remedy == nullptr ? "" : verdict.rule->remedy;
      }
      if (!row.entry->remedy.empty()) added.remedy = row.entry->remedy;
    }
    ReasonGroup& group = groups[found->second];
    group.entries.push_back(row.entry);
    group.macs = SumOf(group.macs, row.entry->macs);
    const bool has_bodies = verdict.own_rule == kBodyOnCpu;  // whose operators are not the reason
    if (has_bodies) ++operators[found->second][OperatorOf(model.origins[row.entry->shown])];
    for (OriginId origin : NodesShown(model, *row.entry)) {
      ++group.nodes;
      if (!has_bodies) ++operators[found->second][OperatorOf(model.origins[origin])];
    }
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::pair<std::string, int>>& list = groups[i].operators;
    list.assign(operators[i].begin(), operators[i].end());
    std::stable_sort(list.begin(), list.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  }
  std::stable_sort(groups.begin(), groups.end(), [](const ReasonGroup& a, const ReasonGroup& b) {
    constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
    return std::tuple(a.macs.value_or(kUnknown), a.nodes) >
           std::tuple(b.macs.value_or(kUnknown), b.nodes);
  });
  return groups;
}

std::vector<WarningGroup> WarningGroupsOf(const Model& model, const Plan& plan) {
  std::vector<int64_t> macs(model.origins.size());
  for (const PlanRow& row : RowsOf(model, plan))
    macs[row.entry->shown] = row.entry->macs.value_or(0);
  std::map<std::pair<std::string, std::string>, size_t> index;
  std::vector<WarningGroup> groups;
  std::vector<std::set<std::string>> places;
  for (const PlanWarning& w : plan.warnings) {
    const auto [found, is_new] =
        index.emplace(std::pair(w.rule, w.of_kind ? w.message : ""), groups.size());
    if (is_new) {
      groups.emplace_back().first = &w;
      places.emplace_back();
    }
    if (!places[found->second].insert(w.node).second) continue;
    WarningGroup& group = groups[found->second];
    ++group.nodes;
    if (w.origin != kNone) group.macs += macs[w.origin];
  }
  std::stable_sort(groups.begin(), groups.end(), [](const WarningGroup& a, const WarningGroup& b) {
    const auto rank = [](const WarningGroup& group) {
      const bool first = group.first->origin == kNone || group.first->rule == kLoweringFault;
      return std::tuple(first, group.macs, group.nodes);
    };
    return rank(a) > rank(b);
  });
  return groups;
}

std::string NameOf(const Origin& origin) { return origin.name.empty() ? origin.id : origin.name; }

std::string OperatorOf(const Origin& origin) {
  return origin.domain.empty() ? origin.op_type
                               : absl::StrCat(origin.op_type, " (", origin.domain, ")");
}

std::string PlaceOf(const Model& model, const PlanWarning& warning) {
  return warning.origin == kNone ? warning.node : NameOf(model.origins[warning.origin]);
}

}  // namespace anemone
