#include "provider/ort/report.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/target_names.h"
#include "importer/read/bindings.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

constexpr size_t kTopReasons = 3;

std::string ReasonOf(const Verdict& verdict) {
  const std::string words = verdict.message.empty() && verdict.rule != nullptr
                                ? std::string(verdict.rule->condition)
                                : verdict.message;
  return absl::StrCat(LayerName(verdict.layer), ": ", words, " [", verdict.rule_id(), "]");
}

std::string Start(const Plan& plan) {
  return absl::StrCat("ANE, ", TargetLabel(*plan.target), ": ");
}

// "batch, height, dimension 2 of 'x'".
std::string FreeDimensions(const Model& model) {
  std::vector<std::string> names;
  for (const UnboundDim& dim : UnboundDims(model)) {
    std::string name = !dim.symbol.empty() ? dim.symbol
                       : dim.axis == kNone
                           ? absl::StrCat("all of '", dim.input, "'")
                           : absl::StrCat("dimension ", dim.axis, " of '", dim.input, "'");
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return Printable(absl::StrJoin(names, ", "));
}

std::string ShareText(const HostPlan& made) {
  const std::optional<int64_t> macs = made.plan.macs();
  const std::optional<int64_t> engine = made.plan.engine_macs();
  if (macs && engine) {
    if (*macs == 0) return "no MACs";
    // Not all of them is not 100 %.
    const double percent = 100.0 * static_cast<double>(*engine) / static_cast<double>(*macs);
    return absl::StrCat(*engine == *macs ? "100 %"
                                         : absl::StrFormat("%.1f %%", std::min(percent, 99.9)),
                        " of ", ShortCount(*macs), " MACs on the engine");
  }
  const std::string free = FreeDimensions(made.model);
  if (free.empty()) return "cannot tell the share of MACs, because sizes are known only at run time";
  return absl::StrCat("cannot tell the share of MACs yet, because dimensions are free: ", free,
                      "; bind them with SessionOptions.add_free_dimension_override_by_name()");
}

// The largest number first.
std::vector<std::pair<std::string, int>> Ranked(const std::map<std::string, int>& counts) {
  std::vector<std::pair<std::string, int>> ranked(counts.begin(), counts.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return ranked;
}

}  // namespace

std::string ClaimLine(const HostPlan& made) {
  int by_placement[3] = {};
  for (const PlanEntry& entry : made.plan.entries) ++by_placement[static_cast<int>(entry.placement)];
  const size_t segments = made.claims.size();
  return absl::StrFormat(
      "%s%s, %d %s. ONNX Runtime's own (already optimized) graph has %d nodes: %d engine, %d CPU, "
      "%d folded",
      Start(made.plan), ShareText(made), segments, segments == 1 ? "segment" : "segments",
      made.plan.entries.size(), by_placement[static_cast<int>(Placement::kEngine)],
      by_placement[static_cast<int>(Placement::kCpu)],
      by_placement[static_cast<int>(Placement::kFolded)]);
}

std::string CpuLine(const HostPlan& made) {
  std::map<std::string, int> reasons;
  for (const PlanEntry& entry : made.plan.entries) {
    if (entry.placement != Placement::kCpu) continue;
    ++reasons[absl::StrCat(made.model.origins[entry.shown].op_type, ", ",
                           ReasonOf(entry.verdict))];
  }
  std::string line = absl::StrCat(Start(made.plan), "on the CPU");
  const auto ranked = Ranked(reasons);
  for (size_t i = 0; i < std::min(ranked.size(), kTopReasons); ++i) {
    absl::StrAppend(&line, i == 0 ? ": " : "; ", ranked[i].second, " x ",
                    Printable(ranked[i].first));
  }
  if (ranked.size() > kTopReasons) {
    absl::StrAppend(&line, "; and ", ranked.size() - kTopReasons, " more reasons");
  }
  return line;
}

std::string WarningLine(const HostPlan& made) {
  std::map<std::string, std::set<std::string>> nodes;  // a node may have a warning several times
  for (const PlanWarning& warning : made.plan.warnings) nodes[warning.rule].insert(warning.node);
  std::map<std::string, int> counts;
  for (const auto& [rule, names] : nodes) counts[rule] = static_cast<int>(names.size());
  std::string line = absl::StrCat(Start(made.plan), "warnings: ");
  absl::StrAppend(&line, absl::StrJoin(Ranked(counts), ", ", [](std::string* to, const auto& item) {
                    absl::StrAppend(to, item.second, item.second == 1 ? " node [" : " nodes [",
                                    item.first, "]");
                  }));
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
