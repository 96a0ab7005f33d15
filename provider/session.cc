#include "anemone/session.h"

#include <tbb/task_arena.h>

#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
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
#include "provider/run_inputs.h"
#include "provider/scheduler.h"
#include "provider/settings.h"

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
  bool observed = false;  // loaded with Settings::hazards
  // The programs of several sizes, if there are buckets or free dimensions. If not null, it has all
  // except inputs and outputs.
  std::unique_ptr<Bucketed> sizes;

  // `import` is kept and called again later if there are several sizes.
  static absl::StatusOr<Session> Load(const Settings& settings, const Bucketing::Import& import);
  static Session Of(Bucketing buckets, const LoadTimes& begun, const Settings& settings,
                    const Shared& shared, const Bucketing::Import& import);
  static absl::StatusOr<std::unique_ptr<State>> Make(const Settings& settings, const Shared& shared,
                                                     Model model);
  void SetPorts(const Graph& graph);
  void DropWeights();
  bool has_buckets() const { return sizes != nullptr && sizes->has_buckets(); }
  // Of several sizes without buckets: the session whose plan is shown. Null before the first run.
  std::shared_ptr<const Session> Shown() const {
    return sizes == nullptr || has_buckets() ? nullptr : sizes->last();
  }
  absl::StatusOr<NamedValues> Run(const NamedValues& given, Trace* trace, HazardLog* hazards) const;
  absl::StatusOr<std::map<std::string, Tensor>> RunTensors(
      const std::map<std::string, Tensor>& given, Trace* trace, HazardLog* hazards = nullptr) const;
};

void Session::State::SetPorts(const Graph& graph) {
  for (ValueId v : graph.inputs) inputs.push_back(PortOf(graph, v));
  for (ValueId v : graph.outputs) outputs.push_back(PortOf(graph, v));
}

// Frees the constants that only programs of the engine read, which have packed them.
void Session::State::DropWeights() {
  Graph& graph = model.graph;
  std::vector<bool> kept(graph.values.size());
  const auto keep = [&](const std::vector<ValueId>& values) {
    for (ValueId v : values) {
      if (v != kNone) kept[v] = true;
    }
  };
  keep(graph.outputs);
  for (Segment& segment : plan.segments) {
    for (Unit& unit : segment.network.units) unit.weights.clear();
    for (Constant& constant : segment.network.constants) constant.tensor = Tensor();
    if (segment.placement == Placement::kEngine) continue;
    for (NodeId id : segment.nodes) {
      keep(graph.nodes[id].inputs);
      keep(graph.nodes[id].captures);
    }
  }
  for (size_t v = 0; v < kept.size(); ++v) {
    if (!kept[v]) graph.values[v].constant.reset();
  }
}

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::Make(const Settings& settings,
                                                                     const Shared& shared,
                                                                     Model model) {
  auto state = std::make_unique<State>();
  state->arena = shared.arena;
  state->model = std::move(model);
  Stopwatch watch;
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
    auto scheduler = Scheduler::Make(state->model.graph, state->plan, *state->device,
                                     state->runtime, settings.heed_limits);
    compiled = scheduler.status();
    if (scheduler.ok()) state->scheduler = *std::move(scheduler);
  });
  ANEMONE_RETURN_IF_ERROR(compiled);
  if (!settings.hazards) state->DropWeights();
  state->times.compile = watch.Lap();
  state->SetPorts(state->model.graph);
  return state;
}

Session Session::State::Of(Bucketing buckets, const LoadTimes& begun, const Settings& settings,
                           const Shared& shared, const Bucketing::Import& import) {
  auto state = std::make_unique<State>();
  state->observed = settings.hazards;
  state->SetPorts(buckets.free().graph);
  const auto load = [settings, shared,
                     import](const ImportOptions& importing) -> absl::StatusOr<Session> {
    Stopwatch watch;
    ANEMONE_ASSIGN_OR_RETURN(Model model, import(importing));
    const double took = watch.Lap();
    ANEMONE_ASSIGN_OR_RETURN(auto made, Make(settings, shared, std::move(model)));
    made->times.load = took;
    return Session(std::move(made));
  };
  const Bucketed::Options options = {.planning = shared.planning,
                                     .most_exact = static_cast<size_t>(settings.max_plans),
                                     .memory_is_limited = shared.memory->is_limited(),
                                     .begun = begun};
  state->sizes = std::make_unique<Bucketed>(std::move(buckets), options, load);
  return Session(std::move(state));
}

absl::StatusOr<Session> Session::State::Load(const Settings& settings,
                                             const Bucketing::Import& import) {
  ANEMONE_ASSIGN_OR_RETURN(const Shared shared, Share(settings));
  const ImportOptions importing = ImportingOptions(settings, shared.runtime);
  Stopwatch watch;
  if (!settings.buckets.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(Bucketing buckets,
                             Bucketing::Make(settings.buckets, importing, import));
    return Of(std::move(buckets), {}, settings, shared, import);
  }
  ANEMONE_ASSIGN_OR_RETURN(Model model, import(importing));
  const LoadTimes begun = {.load = watch.Lap()};
  if (!UnboundDims(model).empty()) {
    return Of(Bucketing::OfArrays(std::move(model), importing, import), begun, settings, shared,
              import);
  }
  ANEMONE_ASSIGN_OR_RETURN(auto state, Make(settings, shared, std::move(model)));
  state->times.load = begun.load;
  return Session(std::move(state));
}

absl::StatusOr<NamedValues> Session::State::Run(const NamedValues& given, Trace* trace,
                                                HazardLog* hazards) const {
  if (sizes != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, sizes->Prepare(given));
    ANEMONE_ASSIGN_OR_RETURN(auto made, job.program->state_->Run(job.inputs, trace, hazards));
    return Bucketed::Crop(job, std::move(made));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<OnnxValue> values,
                           InputsInOrder(model.graph, inputs, given));
  absl::StatusOr<std::vector<OnnxValue>> results;
  arena->execute([&] { results = scheduler->Run(values, trace, hazards); });
  ANEMONE_RETURN_IF_ERROR(results.status());
  NamedValues named;
  for (size_t i = 0; i < outputs.size(); ++i) named[outputs[i].name] = std::move((*results)[i]);
  return named;
}

absl::StatusOr<std::map<std::string, Tensor>> Session::State::RunTensors(
    const std::map<std::string, Tensor>& given, Trace* trace, HazardLog* hazards) const {
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
  return Guarded("run the model", [&] { return state_->Run(inputs, nullptr, nullptr); });
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
    if (state_->sizes != nullptr) {
      ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job,
                               state_->sizes->Prepare({inputs.begin(), inputs.end()}));
      std::map<std::string, Tensor> padded;
      for (const auto& [name, value] : job.inputs) padded[name] = value.tensor;
      return job.program->FindHazards(padded);
    }
    HazardLog log(state_->model, state_->plan);
    ANEMONE_RETURN_IF_ERROR(state_->RunTensors(inputs, nullptr, &log).status());
    return log.Take();
  });
}

absl::StatusOr<BucketUse> Session::UseOf(const std::map<std::string, Tensor>& inputs) const {
  if (!state_->has_buckets()) {
    return absl::FailedPreconditionError(
        "buckets: this session was loaded without any; load it with Settings::buckets (in Python "
        "buckets=)");
  }
  return Guarded("choose a bucket", [&]() -> absl::StatusOr<BucketUse> {
    ANEMONE_ASSIGN_OR_RETURN(Bucketed::Job job,
                             state_->sizes->Prepare({inputs.begin(), inputs.end()}));
    return std::move(job.use);
  });
}

std::string Session::PlanLine() const {
  if (const auto shown = state_->Shown()) return shown->PlanLine();
  if (state_->sizes != nullptr) {
    const auto plans = state_->sizes->Plans();
    return plans.ok() ? (*plans)->Lines() : std::string(plans.status().message());
  }
  return anemone::PlanLine(state_->model, state_->plan);
}

std::string Session::PlanText(bool every_node, int width) const {
  const PlanTextOptions options = {.every_node = every_node, .width = width};
  if (const auto shown = state_->Shown()) return shown->PlanText(every_node, width);
  if (state_->sizes != nullptr) {
    const auto plans = state_->sizes->Plans();
    return plans.ok() ? (*plans)->Text(options) : std::string(plans.status().message());
  }
  return anemone::PlanText(state_->model, state_->plan, options);
}

std::string Session::PlanJson() const {
  if (const auto shown = state_->Shown()) return shown->PlanJson();
  if (state_->sizes != nullptr) {
    const auto plans = state_->sizes->Plans();
    if (!plans.ok()) return "null";
    const Json targets = (*plans)->TargetsJson();
    return JsonText(state_->has_buckets() ? targets : targets.front());
  }
  return JsonText(anemone::PlanJson(state_->model, state_->plan));
}

PlanSummary Session::Summary() const {
  if (state_->sizes != nullptr) {
    const auto last = state_->sizes->last();
    return last == nullptr ? PlanSummary() : last->Summary();
  }
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
  return state_->sizes != nullptr ? state_->sizes->times() : state_->times;
}

}  // namespace anemone
