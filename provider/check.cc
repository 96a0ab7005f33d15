#include "anemone/check.h"

#include <functional>
#include <utility>

#include "base/guarded.h"
#include "base/status_macros.h"
#include "partitioner/plan_groups.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/buckets/bucketing.h"
#include "provider/buckets/sized_plans.h"
#include "provider/importing.h"
#include "provider/rejected.h"
#include "provider/report/report_page.h"
#include "provider/settings.h"
#include "provider/work_limits.h"

namespace anemone {

struct CheckReport::State {
  SizedPlans plans;
  Settings settings;

  static absl::StatusOr<CheckReport> Report(const Settings& settings,
                                            const Bucketing::Import& import);
};

CheckReport::CheckReport(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckReport::CheckReport(CheckReport&&) noexcept = default;
CheckReport& CheckReport::operator=(CheckReport&&) noexcept = default;
CheckReport::~CheckReport() = default;

size_t CheckReport::targets() const { return state_->plans.plans().size(); }

std::optional<double> CheckReport::EngineMacsShare(size_t target) const {
  return KnownShareOf(state_->plans.model(target), state_->plans.plans()[target]);
}

std::string CheckReport::WhyShareUnknown(size_t target) const {
  return anemone::WhyShareUnknown(state_->plans.model(target), state_->plans.plans()[target]);
}

std::string CheckReport::Text(bool every_node, bool colour, int width) const {
  return state_->plans.Text({.every_node = every_node, .colour = colour, .width = width});
}

std::string CheckReport::Json() const { return state_->plans.ToJsonText(); }

std::string CheckReport::Html() const { return ReportPage(state_->plans); }

absl::StatusOr<SavedRejected> CheckReport::SaveRejected(const std::string& folder) const {
  return Guarded("save the rejected nodes",
                 [&] { return anemone::SaveRejected(state_->plans, state_->settings, folder); });
}

namespace {

absl::StatusOr<SizedPlans> MakePlans(const Settings& settings, const Bucketing::Import& import) {
  std::vector<PlanOptions> plannings;
  Settings one = settings;
  for (const std::string& target : TargetsOf(settings)) {
    one.target = target;
    ANEMONE_ASSIGN_OR_RETURN(PlanOptions planning, PlanOptionsOf(one));
    planning.bodies = true;
    plannings.push_back(std::move(planning));
  }
  // Without ONNX Runtime fewer constants are folded, but the check still works, and says so.
  const auto runtime =
      std::make_shared<LazyRuntime>(1, settings.ort_library, settings.memory_limit);
  const ImportOptions importing = ImportingOptions(settings, runtime);
  const auto explained = [&](const ImportOptions& options) -> absl::StatusOr<Model> {
    ANEMONE_ASSIGN_OR_RETURN(Model model, import(options));
    runtime->ExplainMissing(model);
    return model;
  };
  if (settings.buckets.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(Model model, explained(importing));
    return SizedPlans::Of(std::move(model), plannings);
  }
  ANEMONE_ASSIGN_OR_RETURN(Bucketing buckets,
                           Bucketing::Make(settings.buckets, importing, explained));
  return SizedPlans::OfBuckets(buckets, plannings);
}

}  // namespace

absl::StatusOr<CheckReport> CheckReport::State::Report(const Settings& settings,
                                                       const Bucketing::Import& import) {
  const WorkLimits limits(settings);
  ANEMONE_ASSIGN_OR_RETURN(SizedPlans plans, MakePlans(settings, import));
  return CheckReport(std::make_unique<State>(State{std::move(plans), settings}));
}

absl::StatusOr<CheckReport> Check(const std::string& path, const Settings& settings) {
  return Guarded("check the model", [&] {
    return CheckReport::State::Report(
        settings, [&](const ImportOptions& importing) { return ImportFile(path, importing); });
  });
}

absl::StatusOr<CheckReport> CheckBytes(absl::string_view model, const Settings& settings) {
  return Guarded("check the model", [&] {
    const auto bytes = std::make_shared<const std::string>(model);
    return CheckReport::State::Report(settings, [&](const ImportOptions& importing) {
      return ImportShared(bytes, "", importing);
    });
  });
}

}  // namespace anemone
