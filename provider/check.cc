#include "anemone/check.h"

#include <functional>
#include <utility>

#include "anemone/guarded.h"
#include "anemone/status_macros.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/importing.h"
#include "provider/planning.h"

namespace anemone {

struct CheckReport::State {
  Model model;
  std::vector<Plan> plans;

  using Import = std::function<absl::StatusOr<Model>(const ImportOptions&)>;
  static absl::StatusOr<CheckReport> Report(const CheckOptions& options, const Import& import);
};

CheckReport::CheckReport(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckReport::CheckReport(CheckReport&&) noexcept = default;
CheckReport& CheckReport::operator=(CheckReport&&) noexcept = default;
CheckReport::~CheckReport() = default;

size_t CheckReport::targets() const { return state_->plans.size(); }

std::optional<double> CheckReport::EngineMacsShare(size_t target) const {
  const Plan& plan = state_->plans[target];
  if (plan.macs() == 0) return std::nullopt;
  return static_cast<double>(plan.engine_macs()) / static_cast<double>(plan.macs());
}

std::string CheckReport::Text(bool every_node, bool colour) const {
  std::string text;
  for (const Plan& plan : state_->plans) {
    text += PlanText(state_->model, plan, every_node, colour);
  }
  return text;
}

std::string CheckReport::Json() const {
  return ModelJson(state_->model, state_->plans)
      .dump(-1, ' ', false, anemone::Json::error_handler_t::replace);
}

absl::StatusOr<CheckReport> CheckReport::State::Report(const CheckOptions& options,
                                                       const Import& import) {
  return Guarded("check the model", [&]() -> absl::StatusOr<CheckReport> {
    std::vector<PlanOptions> plannings;
    for (const std::string& target : ExpandTargets(options.targets)) {
      ANEMONE_ASSIGN_OR_RETURN(
          PlanOptions planning,
          PlanningOptions(target, options.route, options.policy, options.rewrites));
      planning.bodies = true;
      plannings.push_back(std::move(planning));
    }
    // Without ONNX Runtime fewer constants are folded, which is no reason not to answer.
    auto runtime = std::make_shared<LazyRuntime>(1, options.ort_library);
    auto state = std::make_unique<State>();
    ANEMONE_ASSIGN_OR_RETURN(state->model,
                             import(ImportingOptions(options.dims, options.shapes, runtime)));
    for (const PlanOptions& planning : plannings) {
      ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(state->model, planning));
      state->plans.push_back(std::move(plan));
    }
    return CheckReport(std::move(state));
  });
}

absl::StatusOr<CheckReport> Check(const std::string& path, const CheckOptions& options) {
  return CheckReport::State::Report(
      options, [&](const ImportOptions& importing) { return ImportFile(path, importing); });
}

absl::StatusOr<CheckReport> CheckBytes(absl::string_view model, const CheckOptions& options) {
  return CheckReport::State::Report(
      options, [&](const ImportOptions& importing) { return ImportBytes(model, "", importing); });
}

}  // namespace anemone
