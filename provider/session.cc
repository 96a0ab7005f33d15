#include "anemone/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/surfaces.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "importer/last_row.h"
#include "provider/compiled/compiled_model.h"
#include "provider/kept_state.h"
#include "provider/load_setup.h"
#include "provider/loaded_model.h"
#include "provider/ports.h"
#include "provider/settings.h"
#include "provider/state_pairs.h"
#include "provider/weights/current_model.h"
#include "provider/work_limits.h"

namespace anemone {

namespace {

absl::StatusOr<std::map<std::string, Tensor>> TensorsOf(absl::StatusOr<NamedValues> made) {
  ANEMONE_RETURN_IF_ERROR(made.status());
  std::map<std::string, Tensor> tensors;
  for (auto& [name, value] : *made) {
    tensors.emplace_hint(tensors.end(), name, std::move(value.tensor));
  }
  return tensors;
}

absl::Status NoState(const std::string& input) {
  return absl::NotFoundError(
      absl::StrCat("state '", Printable(input),
                   "': this session keeps none; load it with Settings::state (in Python state=)"));
}

// What became of Settings::last_logits.
std::string LastLogitsText(const CurrentModel& model) {
  if (!model.settings().last_logits) return "";
  const PortInfo* logits = FindPort(model.outputs(), kLogits);
  if (logits != nullptr && logits->dims.size() == 3 && logits->dims[1] == 1) {
    return "  logits: those of the last token only\n";
  }
  return "  logits: of all tokens, as there is no output logits of batch x tokens x vocabulary\n";
}

// `add` adds the values of adapters to the inputs.
template <class Add>
absl::StatusOr<NamedValues> RunWith(const CurrentModel& model, KeptState* state, NamedValues with,
                                    Trace* trace, const Add& add) {
  ANEMONE_RETURN_IF_ERROR(model.CheckProcess());
  const TimeLimit limit(model.time_limit());
  ANEMONE_RETURN_IF_ERROR(add(with));
  if (state != nullptr) return state->Run(with, trace);
  return model.Get()->Run(std::move(with), trace, nullptr);
}

absl::StatusOr<NamedValues> Run(const CurrentModel& model, KeptState* state, NamedValues given,
                                const std::string& adapter, Trace* trace) {
  return RunWith(model, state, std::move(given), trace,
                 [&](NamedValues& with) { return model.adapters().AddTo(adapter, with); });
}

}  // namespace

Session::Session(std::shared_ptr<CurrentModel> model, std::unique_ptr<KeptState> state)
    : model_(std::move(model)), state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Of(const LoadSetup& setup) {
  ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedModel> loaded, LoadedModel::Load(setup));
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kCompile));  // of what was not interrupted
  ANEMONE_ASSIGN_OR_RETURN(const auto model, CurrentModel::Make(setup, loaded));
  if (setup.settings.state.empty()) return Session(model, nullptr);
  ANEMONE_ASSIGN_OR_RETURN(
      std::vector<StatePair> pairs,
      FindStatePairs(setup.settings.state, loaded->graph(), loaded->inputs, loaded->outputs));
  model->Keep(pairs);
  return Session(model, std::make_unique<KeptState>(model, std::move(pairs)));
}

absl::StatusOr<Session> Session::Load(const std::string& path, const Settings& settings) {
  return Guarded("load the model", [&]() -> absl::StatusOr<Session> {
    const TimeLimit limit(settings.time_limit);
    const absl::Time begun = SteadyNow();
    const auto load =
        [&](const std::string& file, const Settings& with,
            std::shared_ptr<const CompiledModel> compiled) -> absl::StatusOr<Session> {
      ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, MakeLoadSetup(with, file, nullptr));
      // Adapters change the model that is planned.
      if (compiled != nullptr && setup.adapters->modules() == nullptr && !with.hazards) {
        setup.state_in_place = compiled->state();
        setup.cache = std::move(compiled);
      }
      setup.opened = absl::ToDoubleMilliseconds(SteadyNow() - begun);
      return Of(setup);
    };
    if (!CompiledModel::Is(path)) return load(path, settings, nullptr);
    ANEMONE_RETURN_IF_ERROR(CheckRunSettings(settings));
    const auto open = [&] {
      const WorkLimits limits(settings);
      return CompiledModel::Open(path);
    };
    ANEMONE_ASSIGN_OR_RETURN(const auto compiled, open());
    ANEMONE_ASSIGN_OR_RETURN(const Settings merged, compiled->SettingsFor(settings));
    return load(compiled->model_path(), merged, compiled);
  });
}

absl::StatusOr<Session> Session::LoadBytes(absl::string_view model, const Settings& settings) {
  return Guarded("load the model", [&]() -> absl::StatusOr<Session> {
    const TimeLimit limit(settings.time_limit);
    const auto bytes = std::make_shared<const std::string>(model);
    ANEMONE_ASSIGN_OR_RETURN(const LoadSetup setup, MakeLoadSetup(settings, "", bytes));
    return Of(setup);
  });
}

const std::vector<PortInfo>& Session::inputs() const {
  return state_ == nullptr ? model_->inputs() : state_->inputs();
}
const std::vector<PortInfo>& Session::outputs() const {
  return state_ == nullptr ? model_->outputs() : state_->outputs();
}

std::vector<std::string> Session::ConstantInputs() const {
  return model_->Get()->graph().constant_inputs;
}

absl::StatusOr<std::map<std::string, Tensor>> Session::Run(
    const std::map<std::string, Tensor>& inputs, const std::string& adapter) const {
  ANEMONE_RETURN_IF_ERROR(RequireTensors(outputs()));
  return Guarded("run the model", [&] {
    return TensorsOf(
        anemone::Run(*model_, state_.get(), {inputs.begin(), inputs.end()}, adapter, nullptr));
  });
}

absl::StatusOr<std::map<std::string, OnnxValue>> Session::RunValues(
    const std::map<std::string, OnnxValue>& inputs, const std::string& adapter) const {
  return Guarded("run the model",
                 [&] { return anemone::Run(*model_, state_.get(), inputs, adapter, nullptr); });
}

absl::StatusOr<std::map<std::string, OnnxValue>> Session::RunRows(
    const std::map<std::string, OnnxValue>& inputs,
    const std::vector<std::string>& adapters) const {
  return Guarded("run the model", [&] {
    return RunWith(*model_, state_.get(), inputs, nullptr,
                   [&](NamedValues& with) { return model_->adapters().AddRows(adapters, with); });
  });
}

absl::StatusOr<std::map<std::string, Tensor>> Session::RunTraced(
    const std::map<std::string, Tensor>& inputs, std::string* trace) const {
  ANEMONE_RETURN_IF_ERROR(RequireTensors(outputs()));
  return Guarded("run the model", [&]() -> absl::StatusOr<std::map<std::string, Tensor>> {
    Trace events;
    auto made =
        TensorsOf(anemone::Run(*model_, state_.get(), {inputs.begin(), inputs.end()}, "", &events));
    const std::string added = events.Take();
    absl::StrAppend(trace, trace->empty() || added.empty() ? "" : ",\n", added);
    return made;
  });
}

std::map<std::string, std::string> Session::StatePairs() const {
  if (state_ == nullptr) return {};
  return state_->PairNames();
}

void Session::ResetState() {
  if (state_ != nullptr) state_->Reset();
}

absl::StatusOr<Tensor> Session::ReadState(const std::string& input) const {
  ANEMONE_RETURN_IF_ERROR(model_->CheckProcess());
  if (state_ == nullptr) return NoState(input);
  return Guarded("read a state", [&] { return state_->Read(input); });
}

absl::Status Session::WriteState(const std::string& input, const Tensor& value) {
  ANEMONE_RETURN_IF_ERROR(model_->CheckProcess());
  if (state_ == nullptr) return NoState(input);
  return Guarded("write a state", [&] { return state_->Write(input, value); });
}

std::string Session::GrowthRefusal() const {
  return state_ == nullptr ? "" : state_->GrowthRefusal();
}

Session Session::Fork() const {
  return Session(model_, state_ == nullptr ? nullptr : state_->Fork());
}

absl::StatusOr<Surfaces> Session::MakeSurfaces(const std::vector<std::string>& ports) const {
  ANEMONE_RETURN_IF_ERROR(model_->CheckProcess());
  if (state_ != nullptr) {
    return absl::FailedPreconditionError(
        "surfaces: the session keeps a state, with surfaces of its own; load another without");
  }
  return Guarded("make surfaces", [&] { return Surfaces::Of(model_, ports); });
}

absl::StatusOr<std::vector<Hazard>> Session::FindHazards(
    const std::map<std::string, Tensor>& inputs) const {
  ANEMONE_RETURN_IF_ERROR(model_->CheckProcess());
  if (!model_->Get()->observed) {
    return absl::FailedPreconditionError(
        "hazards: this session was not loaded for them; load it with Settings::hazards");
  }
  return Guarded("run the model", [&]() -> absl::StatusOr<std::vector<Hazard>> {
    const TimeLimit limit(model_->time_limit());
    ANEMONE_ASSIGN_OR_RETURN(const auto all, TensorsOf(WithAll(inputs)));
    return model_->Get()->FindHazards(all);
  });
}

absl::StatusOr<BucketUse> Session::UseOf(const std::map<std::string, Tensor>& inputs) const {
  ANEMONE_RETURN_IF_ERROR(model_->CheckProcess());
  if (!model_->Get()->has_buckets()) {
    return absl::FailedPreconditionError(
        "buckets: this session was loaded without any; load it with Settings::buckets (in Python "
        "buckets=)");
  }
  return Guarded("choose a bucket", [&]() -> absl::StatusOr<BucketUse> {
    const TimeLimit limit(model_->time_limit());
    ANEMONE_ASSIGN_OR_RETURN(const NamedValues all, WithAll(inputs));
    ANEMONE_ASSIGN_OR_RETURN(Bucketed::Job job, model_->Get()->sizes->Prepare(all));
    return std::move(job.use);
  });
}

// With the values of adapters and of the state.
absl::StatusOr<std::map<std::string, OnnxValue>> Session::WithAll(
    const std::map<std::string, Tensor>& inputs) const {
  NamedValues all(inputs.begin(), inputs.end());
  ANEMONE_RETURN_IF_ERROR(model_->adapters().AddTo("", all));
  return state_ == nullptr ? all : state_->WithState(all);
}

absl::Status Session::UpdateWeights(const std::map<std::string, Tensor>& weights) {
  ANEMONE_RETURN_IF_ERROR(model_->CheckProcess());
  return Guarded("update weights", [&] {
    const TimeLimit limit(model_->time_limit());
    return model_->UpdateWeights(weights);
  });
}

std::string Session::PlanLine() const { return model_->Get()->PlanLine(); }
std::string Session::PlanText(bool every_node, int width) const {
  const std::string plan = model_->Get()->PlanText(every_node, width);
  const std::string state = state_ == nullptr ? StateText({}, model_->Get()->inputs,
                                                          model_->Get()->outputs, every_node, width)
                                              : state_->Text(every_node, width);
  return absl::StrCat(plan, LastLogitsText(*model_), state);
}
std::string Session::PlanJson() const { return model_->Get()->PlanJson(); }
PlanSummary Session::Summary() const { return model_->Get()->Summary(); }
std::vector<std::string> Session::RunWarnings() const { return model_->Get()->RunWarnings(); }
LoadTimes Session::times() const { return model_->Get()->times(); }

}  // namespace anemone
