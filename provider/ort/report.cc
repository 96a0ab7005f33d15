#include "provider/ort/report.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/read/free_dimensions.h"
#include "partitioner/plan_groups.h"
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

// In place of the file at `path`, which must be JSON if it exists.
absl::StatusOr<std::unique_ptr<NewFile>> NewJson(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(auto file, NewFile::Make(path));
  const int first = std::ifstream(path, std::ios::binary).peek();
  if (first != std::char_traits<char>::eof() && first != '{') {
    return absl::AlreadyExistsError(absl::StrCat(
        "'", path, "': already exists and is not JSON; choose another file, or remove it"));
  }
  return file;
}

}  // namespace

std::string ClaimLine(const HostPlan& made) {
  const NodeCounts counts = CountsOf(made.model, made.plan);
  std::string line = absl::StrCat("ANE, ", PlanLine(made.model, made.plan));
  const std::string free = Printable(FreeDimensionNames(made.model));
  if (made.plan.nodes_of_unknown_macs() > 0 && !free.empty()) {
    absl::StrAppend(&line, " (", free,
                    "), bind them with SessionOptions.add_free_dimension_override_by_name()");
  }
  absl::StrAppend(&line, ". ONNX Runtime's own (already optimized) graph has ",
                  Counted(counts.all(), "node"), ": ", counts.engine, " engine, ", counts.cpu,
                  " CPU, ", counts.folded, " folded");
  return line;
}

std::string CpuLine(const HostPlan& made) {
  const std::vector<ReasonGroup> groups = ReasonGroupsOf(made.model, made.plan, false);
  std::string line = "ANE: on the CPU";
  for (size_t i = 0; i < std::min(groups.size(), kTopReasons); ++i) {
    const ReasonGroup& group = groups[i];
    const std::string operators =
        absl::StrJoin(group.operators, ", ", [](std::string* to, const auto& found) {
          absl::StrAppend(to, found.second, " ", found.first);
        });
    absl::StrAppend(&line, i == 0 ? ": " : "; ", Printable(operators), ", ",
                    Printable(ReasonOf(*group.verdict)));
  }
  if (groups.size() > kTopReasons) {
    absl::StrAppend(&line, "; and ",
                    Counted(static_cast<int64_t>(groups.size() - kTopReasons), "more reason"));
  }
  return line;
}

std::string WarningLine(const HostPlan& made) {
  return absl::StrCat("ANE: warnings: ",
                      absl::StrJoin(WarningGroupsOf(made.model, made.plan), ", ",
                                    [](std::string* to, const WarningGroup& group) {
                                      absl::StrAppend(to, Counted(group.nodes, "node"), " [",
                                                      group.first->rule, "]");
                                    }));
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
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewJson(path));
  ANEMONE_RETURN_IF_ERROR(file->Write(text));
  return file->PutIntoPlace();
}

absl::Status CheckReplaceable(const std::string& path) { return NewJson(path).status(); }

}  // namespace anemone
