#include "tools/zoo/summary.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/formats/json_keys.h"
#include "engine/target.h"
#include "engine/target_names.h"
#include "tools/zoo/html.h"

namespace anemone {
namespace {

// "M1 (h13)".
std::string TitleOf(const std::string& target) {
  const auto found = FindTarget(target);
  if (!found.ok()) return target;
  const std::string label = TargetLabel(**found);
  return label == target ? label : absl::StrCat(label, " (", target, ")");
}

void AddReason(const Json& line, const Json& reason,
               std::map<std::string, ReasonSummary>& reasons) {
  ReasonSummary& summary = reasons[TextAt(reason, "rule")];
  if (summary.models.empty()) {
    summary.rule = TextAt(reason, "rule");
    summary.layer = TextAt(reason, "layer");
    summary.message = TextAt(reason, "message");
    summary.remedy = TextAt(reason, "remedy");
  }
  for (const Json& name : AtOrNull(reason, "operators")) {
    if (name.is_string()) summary.operators.insert(name.get<std::string>());
  }
  const int64_t nodes = CountAt(reason, "nodes"), macs = CountAt(reason, "macs");
  summary.nodes += nodes;
  summary.macs += macs;
  summary.models.push_back({&line, nodes, macs});
}

void AddModel(const Json& target, TargetSummary& summary) {
  const Json& plan = AtOrNull(target, "summary");
  ++summary.planned;
  summary.whole += AtOrNull(plan, "cpu_nodes") == 0;
  if (AtOrNull(plan, "macs").is_number() && AtOrNull(plan, "engine_macs").is_number()) {
    summary.macs += CountAt(plan, "macs");
    summary.engine_macs += CountAt(plan, "engine_macs");
  } else {
    ++summary.without_macs;
  }
}

}  // namespace

const ReasonSummary* TargetSummary::MostMacs() const {
  const auto most = std::max_element(reasons.begin(), reasons.end(),
                                     [](const auto& a, const auto& b) { return a.macs < b.macs; });
  return most == reasons.end() || most->macs == 0 ? nullptr : &*most;
}

std::vector<TargetSummary> SummariesOf(const ZooLines& lines) {
  std::vector<TargetSummary> summaries;
  std::vector<std::map<std::string, ReasonSummary>> reasons;
  for (const auto& [path, line] : lines) {
    for (const Json& target : line["targets"]) {
      const std::string name = TextAt(target, "target");
      auto at = std::find_if(summaries.begin(), summaries.end(),
                             [&](const TargetSummary& s) { return s.name == name; });
      if (at == summaries.end()) {
        at = summaries.insert(at, TargetSummary{.name = name, .title = TitleOf(name)});
        reasons.emplace_back();
      }
      AddModel(target, *at);
      auto& by_rule = reasons[static_cast<size_t>(at - summaries.begin())];
      for (const Json& reason : AtOrNull(target, "reasons")) AddReason(line, reason, by_rule);
    }
  }
  for (size_t i = 0; i < summaries.size(); ++i) {
    for (auto& [rule, reason] : reasons[i]) {
      std::stable_sort(reason.models.begin(), reason.models.end(),
                       [](const auto& a, const auto& b) {
                         return std::tie(a.macs, a.nodes) > std::tie(b.macs, b.nodes);
                       });
      summaries[i].reasons.push_back(std::move(reason));
    }
    std::stable_sort(summaries[i].reasons.begin(), summaries[i].reasons.end(),
                     [](const ReasonSummary& a, const ReasonSummary& b) {
                       return std::make_pair(a.models.size(), a.macs) >
                              std::make_pair(b.models.size(), b.macs);
                     });
  }
  return summaries;
}

const Json& TargetOf(const Json& line, const std::string& name) {
  static const Json null;
  for (const Json& target : line["targets"]) {
    if (TextAt(target, "target") == name) return target;
  }
  return null;
}

}  // namespace anemone
