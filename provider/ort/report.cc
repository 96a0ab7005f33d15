#include "provider/ort/report.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "partitioner/plan_json.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

constexpr size_t kTopReasons = 3;
constexpr double kFlopsOfMac = 2;

std::string ReasonOf(const Verdict& verdict) {
  const std::string words = verdict.message.empty() && verdict.rule != nullptr
                                ? std::string(verdict.rule->condition)
                                : verdict.message;
  return absl::StrCat(LayerName(verdict.layer), ": ", words, " [", verdict.rule_id(), "]");
}

// The number of ONNX Runtime's nodes in an entry.
int Count(const PlanEntry& entry) { return static_cast<int>(entry.origins.size()); }

}  // namespace

std::string ClaimLine(const HostPlan& made) {
  const Plan& plan = made.plan;
  size_t claimed = 0;
  for (const Claim& claim : made.claims) claimed += claim.nodes.size();
  std::map<std::string, int> reasons;
  for (const PlanEntry& entry : plan.entries) {
    if (entry.placement != Placement::kCpu) continue;
    reasons[absl::StrCat(made.model.origins[entry.shown].op_type, ": ", ReasonOf(entry.verdict))] +=
        Count(entry);
  }
  const std::optional<double> share = plan.engine_macs_share();
  const std::string work =
      plan.nodes_of_unknown_macs() > 0
          ? "an unknown share of MACs"
          : absl::StrFormat("%.1f %% of %.3g MFLOP", 100 * share.value_or(0),
                            kFlopsOfMac * static_cast<double>(plan.macs().value_or(0)) / 1e6);
  std::string line =
      absl::StrFormat("ANE %s: %d of %d nodes and %s in %d segments", plan.target->option_name(),
                      claimed, made.model.origins.size(), work, made.claims.size());
  std::vector<std::pair<std::string, int>> ranked(reasons.begin(), reasons.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < std::min(ranked.size(), kTopReasons); ++i) {
    absl::StrAppend(&line, i == 0 ? "; the rest: " : ", ", ranked[i].second, " x ",
                    Printable(ranked[i].first));
  }
  if (ranked.size() > kTopReasons) {
    absl::StrAppend(&line, ", and ", ranked.size() - kTopReasons, " more reasons");
  }
  return line;
}

std::vector<std::string> ReasonLines(const HostPlan& made) {
  std::vector<std::string> lines;
  for (const PlanEntry& entry : made.plan.entries) {
    if (entry.placement != Placement::kCpu) continue;
    const Origin& shown = made.model.origins[entry.shown];
    lines.push_back(absl::StrCat("ANE: node '", Printable(shown.name), "' (",
                                 Printable(shown.op_type),
                                 ") stays on the CPU: ", Printable(ReasonOf(entry.verdict))));
  }
  return lines;
}

void ReportFile::Add(const std::string& graph, const HostPlan& made) {
  Json json = ModelJson(made.model, absl::MakeConstSpan(&made.plan, 1));
  for (auto& [name, known] : models_) {
    if (name != graph) continue;
    known = std::move(json);
    return;
  }
  models_.emplace_back(graph, std::move(json));
}

absl::Status ReportFile::Write(const std::string& path) const {
  Json models = Json::array();
  for (const auto& entry : models_) models.push_back(entry.second);
  const Json all = {{"schema", 1}, {"version", kVersion}, {"models", std::move(models)}};
  return ReplaceFile(path, JsonText(all) + "\n");
}

absl::Status ReplaceFile(const std::string& path, absl::string_view text) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(path));
  const int first = std::ifstream(path, std::ios::binary).peek();
  if (first != std::char_traits<char>::eof() && first != '{') {
    return absl::AlreadyExistsError(absl::StrCat(
        "'", path, "': already exists and is not JSON; choose another file, or remove it"));
  }
  ANEMONE_RETURN_IF_ERROR(file->Write(text));
  return file->PutIntoPlace();
}

}  // namespace anemone
