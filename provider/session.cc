#include "anemone/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "importer/importer.h"
#include "provider/load_setup.h"
#include "provider/loaded_model.h"
#include "provider/weights/current_model.h"

namespace anemone {
namespace {

template <class Values>
absl::StatusOr<Values> WithAdapter(const CurrentModel& model, const Values& inputs,
                                   const std::string& adapter) {
  Values with = inputs;
  ANEMONE_RETURN_IF_ERROR(model.adapters().AddTo(adapter, with));
  return with;
}

}  // namespace

Session::Session(std::shared_ptr<CurrentModel> model) : model_(std::move(model)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Load(const std::string& path, const Settings& settings) {
  return Guarded("load the model", [&]() -> absl::StatusOr<Session> {
    const auto import = [path](const ImportOptions& importing) {
      return ImportFile(path, importing);
    };
    ANEMONE_ASSIGN_OR_RETURN(const LoadSetup setup, MakeLoadSetup(settings, import, path, nullptr));
    ANEMONE_ASSIGN_OR_RETURN(auto loaded, LoadedModel::Load(setup));
    ANEMONE_ASSIGN_OR_RETURN(auto model, CurrentModel::Make(setup, std::move(loaded)));
    return Session(std::move(model));
  });
}

absl::StatusOr<Session> Session::LoadBytes(absl::string_view model, const Settings& settings) {
  return Guarded("load the model", [&]() -> absl::StatusOr<Session> {
    const auto bytes = std::make_shared<const std::string>(model);
    const auto import = [bytes](const ImportOptions& importing) {
      return ImportShared(bytes, "", importing);
    };
    ANEMONE_ASSIGN_OR_RETURN(const LoadSetup setup, MakeLoadSetup(settings, import, "", bytes));
    ANEMONE_ASSIGN_OR_RETURN(auto loaded, LoadedModel::Load(setup));
    ANEMONE_ASSIGN_OR_RETURN(auto model, CurrentModel::Make(setup, std::move(loaded)));
    return Session(std::move(model));
  });
}

const std::vector<PortInfo>& Session::inputs() const { return model_->inputs(); }
const std::vector<PortInfo>& Session::outputs() const { return model_->outputs(); }

absl::StatusOr<std::map<std::string, Tensor>> Session::Run(
    const std::map<std::string, Tensor>& inputs, const std::string& adapter) const {
  return Guarded("run the model", [&]() -> absl::StatusOr<std::map<std::string, Tensor>> {
    ANEMONE_ASSIGN_OR_RETURN(const auto with, WithAdapter(*model_, inputs, adapter));
    return model_->Get()->RunTensors(with, nullptr);
  });
}

absl::StatusOr<std::map<std::string, OnnxValue>> Session::RunValues(
    const std::map<std::string, OnnxValue>& inputs, const std::string& adapter) const {
  return Guarded("run the model", [&]() -> absl::StatusOr<std::map<std::string, OnnxValue>> {
    ANEMONE_ASSIGN_OR_RETURN(const auto with, WithAdapter(*model_, inputs, adapter));
    return model_->Get()->Run(with, nullptr, nullptr);
  });
}

absl::StatusOr<std::map<std::string, Tensor>> Session::RunTraced(
    const std::map<std::string, Tensor>& inputs, std::string* trace) const {
  Trace events;
  auto outputs = Guarded("run the model", [&]() -> absl::StatusOr<std::map<std::string, Tensor>> {
    ANEMONE_ASSIGN_OR_RETURN(const auto with, WithAdapter(*model_, inputs, ""));
    return model_->Get()->RunTensors(with, &events);
  });
  const std::string added = events.Take();
  absl::StrAppend(trace, trace->empty() || added.empty() ? "" : ",\n", added);
  return outputs;
}

absl::StatusOr<std::vector<Hazard>> Session::FindHazards(
    const std::map<std::string, Tensor>& inputs) const {
  if (!model_->Get()->observed) {
    return absl::FailedPreconditionError(
        "hazards: this session was not loaded for them; load it with Settings::hazards");
  }
  return Guarded("run the model", [&]() -> absl::StatusOr<std::vector<Hazard>> {
    ANEMONE_ASSIGN_OR_RETURN(const auto with, WithAdapter(*model_, inputs, ""));
    return model_->Get()->FindHazards(with);
  });
}

absl::StatusOr<BucketUse> Session::UseOf(const std::map<std::string, Tensor>& inputs) const {
  if (!model_->Get()->has_buckets()) {
    return absl::FailedPreconditionError(
        "buckets: this session was loaded without any; load it with Settings::buckets (in Python "
        "buckets=)");
  }
  return Guarded("choose a bucket", [&]() -> absl::StatusOr<BucketUse> {
    ANEMONE_ASSIGN_OR_RETURN(Bucketed::Job job,
                             model_->Get()->sizes->Prepare({inputs.begin(), inputs.end()}));
    return std::move(job.use);
  });
}

absl::Status Session::UpdateWeights(const std::map<std::string, Tensor>& weights) {
  return Guarded("update weights", [&] { return model_->UpdateWeights(weights); });
}

std::string Session::PlanLine() const { return model_->Get()->PlanLine(); }
std::string Session::PlanText(bool every_node, int width) const {
  return model_->Get()->PlanText(every_node, width);
}
std::string Session::PlanJson() const { return model_->Get()->PlanJson(); }
PlanSummary Session::Summary() const { return model_->Get()->Summary(); }
std::vector<std::string> Session::RunWarnings() const { return model_->Get()->RunWarnings(); }
LoadTimes Session::times() const { return model_->Get()->times(); }

}  // namespace anemone
