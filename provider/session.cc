#include "anemone/session.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "engine/software/device_limits.h"
#include "importer/importer.h"
#include "importer/read/bindings.h"
#include "partitioner/plan.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/buckets/bucketed.h"
#include "provider/buckets/bucketing.h"
#include "provider/importing.h"
#include "provider/memory_budget.h"
#include "provider/ports.h"
#include "provider/scheduler.h"
#include "provider/settings.h"
#include "provider/weight_check.h"

namespace anemone {
namespace {

// Times the steps of Load().
class Stopwatch {
 public:
  double Lap() {
    absl::Time now = absl::Now();
    double took = absl::ToDoubleMilliseconds(now - start_);
    start_ = now;
    return took;
  }

 private:
  absl::Time start_ = absl::Now();
};

// Shared by all programs of a session: the plan options, one thread budget and one of memory.
struct Shared {
  PlanOptions planning;
  std::shared_ptr<MemoryBudget> memory;
  std::shared_ptr<LazyRuntime> runtime;
  std::shared_ptr<tbb::task_arena> arena;
};

absl::StatusOr<Shared> Share(const Settings& settings) {
  ANEMONE_RETURN_IF_ERROR(CheckRunSettings(settings));
  Shared shared;
  ANEMONE_ASSIGN_OR_RETURN(shared.planning, PlanOptionsOf(settings));
  shared.planning.bodies = true;
  shared.memory = std::make_shared<MemoryBudget>(settings.memory_limit);
  const int threads = ThreadsOf(settings.threads);
  shared.runtime = std::make_shared<LazyRuntime>(threads, settings.ort_library);
  shared.arena = std::make_shared<tbb::task_arena>(threads);
  return shared;
}

}  // namespace

struct Session::State {
  std::shared_ptr<const void> memory;  // what it has taken of the budget
  Model model;
  Plan plan;
  std::unique_ptr<Device> device;
  std::shared_ptr<const OrtRuntime> runtime;
  std::unique_ptr<Scheduler> scheduler;
  std::shared_ptr<tbb::task_arena> arena;
  std::vector<PortInfo> inputs, outputs;
  LoadTimes times;
  bool observed = false;              // loaded with Settings::hazards
  std::unique_ptr<Bucketed> buckets;  // if not null, it has all except inputs and outputs

  // `import` is kept and called again later if there are buckets.
  static absl::StatusOr<Session> Load(const Settings& settings, const Bucketing::Import& import);
  static absl::StatusOr<std::unique_ptr<State>> Make(
      const Settings& settings, const Shared& shared,
      const std::function<absl::StatusOr<Model>()>& import);
  void SetPorts(const Graph& graph);
  absl::StatusOr<std::map<std::string, OnnxValue>> Run(
      const std::map<std::string, OnnxValue>& given, Trace* trace, HazardLog* hazards) const;
  absl::StatusOr<std::map<std::string, Tensor>> RunTensors(
      const std::map<std::string, Tensor>& given, Trace* trace, HazardLog* hazards = nullptr) const;
};

void Session::State::SetPorts(const Graph& graph) {
  for (ValueId v : graph.inputs) inputs.push_back(PortOf(graph, v));
  for (ValueId v : graph.outputs) outputs.push_back(PortOf(graph, v));
}

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::Make(
    const Settings& settings, const Shared& shared,
    const std::function<absl::StatusOr<Model>()>& import) {
  auto state = std::make_unique<State>();
  state->arena = shared.arena;
  Stopwatch watch;
  ANEMONE_ASSIGN_OR_RETURN(state->model, import());
  ANEMONE_RETURN_IF_ERROR(RequireBound(state->model));
  state->times.load = watch.Lap();
  ANEMONE_ASSIGN_OR_RETURN(state->plan, anemone::MakePlan(state->model, shared.planning));
  state->times.plan = watch.Lap();
  SoftwareOptions software;
  software.observed = settings.hazards;
  ANEMONE_ASSIGN_OR_RETURN(software.numerics, NumericsMode::Parse(settings.numerics));
  if (shared.memory->is_limited()) {
    const std::string& path = state->model.path;
    ANEMONE_ASSIGN_OR_RETURN(state->memory,
                             shared.memory->Take(path.empty() ? "the model" : path,
                                                 NeedOf(state->model.graph, state->plan, software,
                                                        settings.heed_limits)));
  }
  // A model without CPU segments runs without ONNX Runtime.
  if (state->plan.cpu_segments() > 0) {
    ANEMONE_ASSIGN_OR_RETURN(state->runtime, shared.runtime->Get());
  }
  state->device = MakeSoftwareDevice(software);
  state->observed = settings.hazards;
  if (settings.device_limits) state->device = MakeLimitedDevice(std::move(state->device));
  absl::Status compiled;
  state->arena->execute([&] {
    WarnOfWeights(state->model, state->plan);
    auto scheduler = Scheduler::Make(state->model.graph, state->plan, *state->device,
                                     state->runtime, settings.heed_limits);
    compiled = scheduler.status();
    if (scheduler.ok()) state->scheduler = *std::move(scheduler);
  });
  ANEMONE_RETURN_IF_ERROR(compiled);
  state->times.compile = watch.Lap();
  state->SetPorts(state->model.graph);
  return state;
}

absl::StatusOr<Session> Session::State::Load(const Settings& settings,
                                             const Bucketing::Import& import) {
  ANEMONE_ASSIGN_OR_RETURN(const Shared shared, Share(settings));
  const ImportOptions importing = ImportingOptions(settings, shared.runtime);
  if (settings.buckets.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(auto state, Make(settings, shared, [&] { return import(importing); }));
    return Session(std::move(state));
  }
  ANEMONE_ASSIGN_OR_RETURN(Bucketing buckets, Bucketing::Make(settings.buckets, importing, import));
  auto state = std::make_unique<State>();
  state->observed = settings.hazards;
  state->SetPorts(buckets.free().graph);
  const auto load =
      [settings,
       shared](const std::function<absl::StatusOr<Model>()>& at_sizes) -> absl::StatusOr<Session> {
    ANEMONE_ASSIGN_OR_RETURN(auto made, Make(settings, shared, at_sizes));
    return Session(std::move(made));
  };
  state->buckets = std::make_unique<Bucketed>(std::move(buckets), shared.planning, load);
  return Session(std::move(state));
}

absl::StatusOr<std::map<std::string, OnnxValue>> Session::State::Run(
    const std::map<std::string, OnnxValue>& given, Trace* trace, HazardLog* hazards) const {
  std::vector<OnnxValue> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto found = given.find(inputs[i].name);
    if (found != given.end()) {
      ANEMONE_RETURN_IF_ERROR(
          CheckInput(model.graph, model.graph.inputs[i], inputs[i], found->second));
      values.push_back(found->second);
    } else if (inputs[i].has_default) {
      values.emplace_back(model.graph.defaults.at(model.graph.inputs[i]));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", inputs[i].name, "': missing; give an array for it"));
    }
  }
  for (const auto& entry : given) {
    const std::string& name = entry.first;
    bool known = std::any_of(inputs.begin(), inputs.end(),
                             [&](const PortInfo& port) { return port.name == name; });
    if (known) continue;
    std::string names = absl::StrJoin(inputs, ", ", [](std::string* out, const PortInfo& port) {
      absl::StrAppend(out, port.name);
    });
    return absl::InvalidArgumentError(
        absl::StrCat("input '", name, "': the model has no such input; it has: ", names));
  }
  absl::StatusOr<std::vector<OnnxValue>> results;
  arena->execute([&] { results = scheduler->Run(values, trace, hazards); });
  ANEMONE_RETURN_IF_ERROR(results.status());
  std::map<std::string, OnnxValue> named;
  for (size_t i = 0; i < outputs.size(); ++i) named[outputs[i].name] = std::move((*results)[i]);
  return named;
}

absl::StatusOr<std::map<std::string, Tensor>> Session::State::RunTensors(
    const std::map<std::string, Tensor>& given, Trace* trace, HazardLog* hazards) const {
  if (buckets != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, buckets->Prepare(given));
    ANEMONE_ASSIGN_OR_RETURN(auto made, job.program->state_->RunTensors(job.inputs, trace));
    return Bucketed::Crop(job, std::move(made));
  }
  for (const PortInfo& port : outputs) {  // before the work is done
    if (port.kind == PortKind::kTensor || port.kind == PortKind::kOther) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output '", port.name, "': ", port.type_text,
                     " is not a tensor; use RunValues(), or the Python package's Session"));
  }
  ANEMONE_ASSIGN_OR_RETURN(auto values, Run({given.begin(), given.end()}, trace, hazards));
  std::map<std::string, Tensor> tensors;
  for (auto& [name, value] : values) tensors[name] = std::move(value.tensor);
  return tensors;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Load(const std::string& path, const Settings& settings) {
  return Guarded("load the model", [&] {
    return State::Load(
        settings, [path](const ImportOptions& importing) { return ImportFile(path, importing); });
  });
}

absl::StatusOr<Session> Session::LoadBytes(absl::string_view model, const Settings& settings) {
  return Guarded("load the model", [&] {
    const auto bytes = std::make_shared<const std::string>(model);
    return State::Load(settings, [bytes](const ImportOptions& importing) {
      return ImportShared(bytes, "", importing);
    });
  });
}

const std::vector<PortInfo>& Session::inputs() const { return state_->inputs; }
const std::vector<PortInfo>& Session::outputs() const { return state_->outputs; }

absl::StatusOr<std::map<std::string, Tensor>> Session::Run(
    const std::map<std::string, Tensor>& inputs) const {
  return Guarded("run the model", [&] { return state_->RunTensors(inputs, nullptr); });
}

absl::StatusOr<std::map<std::string, OnnxValue>> Session::RunValues(
    const std::map<std::string, OnnxValue>& inputs) const {
  if (state_->buckets == nullptr) {
    return Guarded("run the model", [&] { return state_->Run(inputs, nullptr, nullptr); });
  }
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : inputs) {
    if (value.kind != OnnxValue::Kind::kTensor) {
      return absl::FailedPreconditionError(
          absl::StrCat("input '", name,
                       "': is not a tensor and cannot be padded; load the model "
                       "without buckets"));
    }
    tensors[name] = value.tensor;
  }
  ANEMONE_ASSIGN_OR_RETURN(auto outputs, Run(tensors));
  return std::map<std::string, OnnxValue>(outputs.begin(), outputs.end());
}

absl::StatusOr<std::map<std::string, Tensor>> Session::RunTraced(
    const std::map<std::string, Tensor>& inputs, std::string* trace) const {
  Trace events;
  auto outputs = Guarded("run the model", [&] { return state_->RunTensors(inputs, &events); });
  const std::string added = events.Take();
  absl::StrAppend(trace, trace->empty() || added.empty() ? "" : ",\n", added);
  return outputs;
}

absl::StatusOr<std::vector<Hazard>> Session::FindHazards(
    const std::map<std::string, Tensor>& inputs) const {
  if (!state_->observed) {
    return absl::FailedPreconditionError(
        "hazards: this session was not loaded for them; load it with Settings::hazards");
  }
  return Guarded("run the model", [&]() -> absl::StatusOr<std::vector<Hazard>> {
    if (state_->buckets != nullptr) {
      ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, state_->buckets->Prepare(inputs));
      return job.program->FindHazards(job.inputs);
    }
    HazardLog log(state_->model, state_->plan);
    ANEMONE_RETURN_IF_ERROR(state_->RunTensors(inputs, nullptr, &log).status());
    return log.Take();
  });
}

absl::StatusOr<BucketUse> Session::UseOf(const std::map<std::string, Tensor>& inputs) const {
  if (state_->buckets == nullptr) {
    return absl::FailedPreconditionError(
        "buckets: this session was loaded without any; load it with Settings::buckets (in Python "
        "buckets=)");
  }
  return Guarded("choose a bucket", [&]() -> absl::StatusOr<BucketUse> {
    ANEMONE_ASSIGN_OR_RETURN(Bucketed::Job job, state_->buckets->Prepare(inputs));
    return std::move(job.use);
  });
}

std::string Session::PlanLine() const {
  if (state_->buckets != nullptr) {
    const auto plans = state_->buckets->Plans();
    return plans.ok() ? (*plans)->Lines() : std::string(plans.status().message());
  }
  return anemone::PlanLine(state_->model, state_->plan);
}

std::string Session::PlanText(bool every_node, int width) const {
  const PlanTextOptions options = {.every_node = every_node, .width = width};
  if (state_->buckets != nullptr) {
    const auto plans = state_->buckets->Plans();
    return plans.ok() ? (*plans)->Text(options) : std::string(plans.status().message());
  }
  return anemone::PlanText(state_->model, state_->plan, options);
}

std::string Session::PlanJson() const {
  if (state_->buckets != nullptr) {
    const auto plans = state_->buckets->Plans();
    return plans.ok() ? JsonText((*plans)->TargetsJson()) : "null";
  }
  return JsonText(anemone::PlanJson(state_->model, state_->plan));
}

PlanSummary Session::Summary() const {
  if (state_->buckets != nullptr) return state_->buckets->summary();
  const Plan& plan = state_->plan;
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

LoadTimes Session::times() const {
  return state_->buckets != nullptr ? state_->buckets->times() : state_->times;
}

}  // namespace anemone
