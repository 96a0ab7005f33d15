#include "tools/compare/contestants.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/model_limits.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "importer/importer.h"
#include "importer/read/bindings.h"
#include "provider/importing.h"
#include "provider/ports.h"

namespace anemone {

absl::Status AnemoneContestant::Load(const std::string& path, const Arrays& inputs) {
  ANEMONE_ASSIGN_OR_RETURN(Session session, Session::Load(path, settings_));
  session_ = std::make_unique<Session>(std::move(session));
  return SetInputs(inputs);
}

absl::Status AnemoneContestant::SetInputs(const Arrays& inputs) {
  inputs_ = inputs;
  return absl::OkStatus();
}

absl::Status AnemoneContestant::Run() {
  ANEMONE_ASSIGN_OR_RETURN(outputs_, session_->Run(inputs_));
  return absl::OkStatus();
}

absl::Status OrtContestant::Load(const std::string& path, const Arrays& inputs) {
  ANEMONE_ASSIGN_OR_RETURN(runtime_, OpenRuntime(threads_, "", memory_limit_));
  ANEMONE_ASSIGN_OR_RETURN(model_, ReferenceModel::Open(runtime_, path, {}));
  return SetInputs(inputs);
}

absl::Status OrtContestant::SetInputs(const Arrays& inputs) {
  for (const auto& [name, tensor] : inputs) {
    ANEMONE_ASSIGN_OR_RETURN(inputs_[name], CpuValue::FromTensor(runtime_, tensor));
  }
  return absl::OkStatus();
}

absl::Status OrtContestant::Run() {
  ANEMONE_ASSIGN_OR_RETURN(outputs_, model_->Run(inputs_));
  return absl::OkStatus();
}

absl::StatusOr<Arrays> OrtContestant::Outputs() {
  Arrays arrays;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(arrays[model_->outputs()[i].name], outputs_[i].ToTensor());
  }
  return arrays;
}

absl::StatusOr<Arrays> InputsOf(const std::string& path, const Options& options) {
  Settings settings = options.settings;
  settings.dims = RandomDims(options);
  std::vector<PortInfo> ports;
  std::vector<std::string> constants;
  {
    const ModelLimits limits(settings.limits);
    ANEMONE_ASSIGN_OR_RETURN(Model model, ImportFile(path, ImportingOptions(settings, nullptr)));
    ANEMONE_RETURN_IF_ERROR(RequireBound(model));
    constants = model.graph.constant_inputs;
    for (ValueId input : model.graph.inputs) ports.push_back(PortOf(model.graph, input));
  }
  return MakeInputs(ports, constants, options);
}

double MillisecondsOf(const std::function<absl::Status()>& step, absl::Status& status) {
  absl::Time start = SteadyNow();
  status.Update(step());
  return absl::ToDoubleMilliseconds(SteadyNow() - start);
}

double Percentile(std::vector<double> times, double share) {
  std::sort(times.begin(), times.end());
  return times[std::lround(share * static_cast<double>(times.size() - 1))];
}

}  // namespace anemone
