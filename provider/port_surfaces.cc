#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/surfaces.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "provider/loaded_model.h"
#include "provider/ports.h"
#include "provider/row_blocks.h"
#include "provider/scheduler.h"
#include "provider/weights/current_model.h"

namespace anemone {

struct Surfaces::State {
  struct Port {
    std::string name;
    ValueId value = kNone;
    bool is_input = false;
    PortInfo info;
  };

  std::shared_ptr<const CurrentModel> model;
  std::vector<Port> ports;
  std::mutex mutex;  // held while a run lasts
  Scheduler::Resident resident;
  std::map<std::string, SurfaceView> views;
};

Surfaces::Surfaces(std::unique_ptr<State> state) : state_(std::move(state)) {}
Surfaces::Surfaces(Surfaces&&) noexcept = default;
Surfaces& Surfaces::operator=(Surfaces&&) noexcept = default;
Surfaces::~Surfaces() = default;

absl::StatusOr<Surfaces> Surfaces::Of(std::shared_ptr<CurrentModel> model,
                                      const std::vector<std::string>& ports) {
  const auto loaded = model->Get();
  if (loaded->sizes != nullptr) {
    return absl::FailedPreconditionError(
        "surfaces: the model has free dimensions; load it with their sizes (Settings::dims or "
        "shapes), since a surface has one size");
  }
  auto state = std::make_unique<State>();
  const Graph& graph = loaded->graph();
  Scheduler& scheduler = *loaded->scheduler.Get();
  std::vector<Scheduler::Resident::Pair> pairs;
  for (const std::string& name : ports) {
    const PortInfo* const input = FindPort(loaded->inputs, name);
    const PortInfo* const output = FindPort(loaded->outputs, name);
    if ((input == nullptr) == (output == nullptr) ||
        std::count(ports.begin(), ports.end(), name) > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "surfaces: '", Printable(name),
          input == nullptr && output == nullptr ? "' is no input or output of the model"
                                                : "' is given twice, or an input and an output",
          "; give names of inputs and outputs, each once"));
    }
    State::Port port = {.name = name, .is_input = input != nullptr};
    port.info = port.is_input ? *input : *output;
    port.value = port.is_input ? graph.inputs[input - loaded->inputs.data()]
                               : graph.outputs[output - loaded->outputs.data()];
    if (!scheduler.CanShow(port.value)) {
      return absl::FailedPreconditionError(
          absl::StrCat("surfaces: '", Printable(name), "': ",
                       port.is_input ? "only an input of floats that nothing but the engine reads"
                                     : "only an output of floats that the engine makes, and that "
                                       "is not read on the CPU,",
                       " is in its memory; give it to Run() instead"));
    }
    Scheduler::Resident::Pair& pair = pairs.emplace_back();
    (port.is_input ? pair.input : pair.output) = port.value;
    pair.holds = port.is_input;
    state->ports.push_back(std::move(port));
  }
  ANEMONE_ASSIGN_OR_RETURN(state->resident, scheduler.MakeResident(std::move(pairs)));
  for (const State::Port& port : state->ports) {
    const auto [data, layout] = scheduler.Show(state->resident, port.value);
    const Strided at = Strided::On(layout, port.info.dims);
    state->views[port.name] = {data, at.dims, at.strides};
  }
  state->model = std::move(model);
  return Surfaces(std::move(state));
}

absl::StatusOr<SurfaceView> Surfaces::View(const std::string& port) const {
  const auto found = state_->views.find(port);
  if (found != state_->views.end()) return found->second;
  return absl::NotFoundError(absl::StrCat(
      "surfaces: there is none for '", Printable(port),
      "'; there are: ", absl::StrJoin(state_->views, ", ", [](std::string* out, const auto& view) {
        absl::StrAppend(out, Printable(view.first));
      })));
}

absl::StatusOr<std::map<std::string, OnnxValue>> Surfaces::Run(
    const std::map<std::string, OnnxValue>& others) const {
  return Guarded("run the model", [&]() -> absl::StatusOr<NamedValues> {
    const CurrentModel& model = *state_->model;
    ANEMONE_RETURN_IF_ERROR(model.CheckProcess());
    const TimeLimit limit(model.time_limit());
    NamedValues inputs = others;
    ANEMONE_RETURN_IF_ERROR(model.adapters().AddTo("", inputs));
    for (const State::Port& port : state_->ports) {
      if (!port.is_input) continue;
      // Takes no memory; the run ignores it.
      ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZeroFill(port.info.type, port.info.dims));
      if (inputs.emplace(port.name, std::move(zeros)).second) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("input '", Printable(port.name), "' has a surface: write the value there"));
    }
    const std::lock_guard<std::mutex> lock(state_->mutex);
    // New weights change no plan, and so no surface.
    const auto loaded = model.Get();
    loaded->scheduler.Get()->TakeShown(state_->resident);
    ANEMONE_ASSIGN_OR_RETURN(NamedValues made,
                             loaded->Run(inputs, nullptr, nullptr, &state_->resident));
    for (const State::Port& port : state_->ports) made.erase(port.name);
    return made;
  });
}

}  // namespace anemone
