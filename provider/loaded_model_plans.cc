// Plans as text, and what runs warned of.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/guarded.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "partitioner/unit_names.h"
#include "provider/loaded_model.h"

namespace anemone {

PlanSummary SummaryOf(const Plan& plan) {
  std::set<OriginId> warned;
  for (const PlanWarning& warning : plan.warnings) {
    if (warning.origin != kNone) warned.insert(warning.origin);
  }
  return {.target = std::string(plan.target->option_name()),
          .engine_segments = plan.engine_segments(),
          .cpu_segments = plan.cpu_segments(),
          .macs = plan.macs(),
          .engine_macs = plan.engine_macs(),
          .engine_macs_share = plan.engine_macs_share(),
          .warnings = static_cast<int>(plan.warnings.size()),
          .warned_nodes = static_cast<int>(warned.size())};
}

absl::StatusOr<const Planned*> LoadedModel::WholePlan() const {
  if (!plan_again) return &planned;
  return Guarded("plan the model", [&]() -> absl::StatusOr<const Planned*> {
    const std::lock_guard<std::mutex> lock(replanning);
    if (!replanned) {  // an error is not kept: the next call may have more time or memory
      ANEMONE_ASSIGN_OR_RETURN(replanned, plan_again());
    }
    return &*replanned;
  });
}

// "'mul' (Mul)": the model's node of a unit; "" if it is not known.
std::string LoadedModel::NodeOf(absl::string_view unit) const {
  if (sizes != nullptr) {
    const auto last = sizes->last();
    return last == nullptr ? "" : last->NodeOf(unit);
  }
  const auto whole = WholePlan();
  if (!whole.ok()) return "";
  const Origin* origin = UnitNames((*whole)->model, (*whole)->plan).Find(unit);
  if (origin == nullptr) return "";
  return absl::StrCat(
      origin->name.empty() ? origin->id : absl::StrCat("'", Printable(origin->name), "'"), " (",
      Printable(origin->op_type), ")");
}

std::string LoadedModel::PlanLine() const {
  if (const auto shown = Shown()) return shown->PlanLine();
  if (is_unplanned()) return NotPlannedLine(sizes->target());
  if (sizes != nullptr) {
    const auto plans = sizes->Plans();
    return plans.ok() ? (*plans)->Lines() : std::string(plans.status().message());
  }
  if (!line.empty()) return line;
  const auto planned = WholePlan();
  return planned.ok() ? anemone::PlanLine((*planned)->model, (*planned)->plan)
                      : std::string(planned.status().message());
}

std::string LoadedModel::PlanText(bool every_node, int width) const {
  const PlanTextOptions options = {.every_node = every_node, .width = width};
  if (const auto shown = Shown()) return shown->PlanText(every_node, width);
  if (is_unplanned()) {
    return NotPlannedText(sizes->free(), sizes->target(), width);
  }
  if (sizes != nullptr) {
    const auto plans = sizes->Plans();
    return plans.ok() ? (*plans)->Text(options) : std::string(plans.status().message());
  }
  const auto planned = WholePlan();
  if (!planned.ok()) return std::string(planned.status().message());
  return anemone::PlanText((*planned)->model, (*planned)->plan, options);
}

std::string LoadedModel::PlanJson() const {
  if (const auto shown = Shown()) return shown->PlanJson();
  if (sizes != nullptr) {
    const auto plans = sizes->Plans();
    if (!plans.ok()) return "null";
    const std::vector<std::string> targets = (*plans)->TargetTexts();
    if (!has_buckets()) return targets.front();
    return absl::StrCat("[", absl::StrJoin(targets, ","), "]");
  }
  const auto planned = WholePlan();
  return planned.ok() ? anemone::PlanJsonText((*planned)->model, (*planned)->plan) : "null";
}

PlanSummary LoadedModel::Summary() const {
  if (sizes != nullptr) {
    const auto last = sizes->last();
    return last == nullptr ? PlanSummary() : last->Summary();
  }
  if (is_unasked) {
    const auto planned = WholePlan();
    if (planned.ok()) return SummaryOf((*planned)->plan);
  }
  return summary;
}

std::vector<std::string> LoadedModel::RunWarnings() const {
  std::vector<std::string> texts = notes->Texts();
  for (std::string& text : warnings->Texts([&](absl::string_view unit) { return NodeOf(unit); })) {
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace anemone
