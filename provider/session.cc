#include "anemone/session.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "anemone/guarded.h"
#include "anemone/status_macros.h"
#include "engine/software/device_limits.h"
#include "importer/bindings.h"
#include "importer/importer.h"
#include "partitioner/plan.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/bucketed.h"
#include "provider/importing.h"
#include "provider/planning.h"
#include "provider/scheduler.h"

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

PortInfo PortOf(const Graph& graph, ValueId value) {
  const Value& v = graph.values[value];
  PortInfo port{v.name, v.type, {}, graph.defaults.count(value) > 0};
  if (v.shape) {
    for (const Dim& dim : *v.shape) port.dims.push_back(dim.known() ? dim.size : -1);
  }
  return port;
}

absl::Status CheckInput(const PortInfo& port, const Tensor& tensor) {
  bool fits = tensor.dims().size() == port.dims.size();
  for (size_t i = 0; fits && i < port.dims.size(); ++i) {
    fits = port.dims[i] < 0 || port.dims[i] == tensor.dims()[i];
  }
  if (fits && tensor.type() == port.type) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input '", port.name, "': want ", DataTypeName(port.type), " ", DimsToString(port.dims),
      ", got ", DataTypeName(tensor.type()), " ", DimsToString(tensor.dims()),
      "; give an array of that type and shape, or bind another shape at load"));
}

}  // namespace

struct Session::State {
  Model model;
  Plan plan;
  std::unique_ptr<Device> device;
  std::shared_ptr<const OrtRuntime> runtime;
  std::unique_ptr<Scheduler> scheduler;
  mutable tbb::task_arena arena;
  std::vector<PortInfo> inputs, outputs;
  LoadTimes times;
  bool observed = false;              // hazards can be found
  std::unique_ptr<Bucketed> buckets;  // if there are any, they have all but inputs and outputs

  using Import = std::function<absl::StatusOr<Model>(const ImportOptions&)>;
  using Check = std::function<absl::StatusOr<CheckReport>(const CheckOptions&)>;
  // `import` and `check` are kept if there are buckets.
  static absl::StatusOr<std::unique_ptr<State>> Make(const SessionOptions& options,
                                                     const Import& import, const Check& check) {
    return Guarded("load the model", [&] {
      return options.buckets.empty() ? MakeUnguarded(options, import)
                                     : MakeBucketed(options, import, check);
    });
  }
  static absl::StatusOr<std::unique_ptr<State>> MakeBucketed(const SessionOptions& options,
                                                             const Import& import,
                                                             const Check& check);
  static absl::StatusOr<std::unique_ptr<State>> MakeUnguarded(const SessionOptions& options,
                                                              const Import& import);
  absl::StatusOr<std::map<std::string, Tensor>> Run(const std::map<std::string, Tensor>& given,
                                                    Trace* trace,
                                                    HazardLog* hazards = nullptr) const;
};

namespace {

absl::Status CheckChoices(const SessionOptions& options) {
  if (options.device != "auto" && options.device != "software") {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", options.device, "': not in this version; use auto or software"));
  }
  if (options.numerics != "fast" && options.numerics != "exact") {
    return absl::InvalidArgumentError(
        absl::StrCat("numerics '", options.numerics, "': want fast or exact"));
  }
  return absl::OkStatus();
}

int ThreadsOf(const SessionOptions& options) {
  return options.threads > 0 ? options.threads
                             : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::MakeUnguarded(
    const SessionOptions& options, const Import& import) {
  ANEMONE_RETURN_IF_ERROR(CheckChoices(options));
  auto state = std::make_unique<State>();
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions planning, PlanningOptions(options.target, options.route,
                                                                 options.policy, options.rewrites));
  const int threads = ThreadsOf(options);
  state->arena.initialize(threads);

  Stopwatch watch;
  auto runtime = std::make_shared<LazyRuntime>(threads, options.ort_library);
  ANEMONE_ASSIGN_OR_RETURN(state->model,
                           import(ImportingOptions(options.dims, options.shapes, runtime)));
  ANEMONE_RETURN_IF_ERROR(RequireBound(state->model));
  state->times.load = watch.Lap();
  ANEMONE_ASSIGN_OR_RETURN(state->plan, anemone::MakePlan(state->model, planning));
  state->times.plan = watch.Lap();
  // Without ONNX Runtime a model runs as long as nothing of it stays on the CPU.
  if (state->plan.cpu_segments() > 0) {
    ANEMONE_ASSIGN_OR_RETURN(state->runtime, runtime->Get());
  }
  state->device =
      MakeSoftwareDevice({.exact = options.numerics == "exact", .observed = options.hazards});
  state->observed = options.hazards;
  if (options.device_limits) state->device = MakeLimitedDevice(std::move(state->device));
  absl::Status compiled;
  state->arena.execute([&] {
    auto scheduler = Scheduler::Make(state->model.graph, state->plan, *state->device,
                                     state->runtime, options.heed_limits);
    compiled = scheduler.status();
    if (scheduler.ok()) state->scheduler = *std::move(scheduler);
  });
  ANEMONE_RETURN_IF_ERROR(compiled);
  state->times.compile = watch.Lap();
  const Graph& graph = state->model.graph;
  for (ValueId v : graph.inputs) state->inputs.push_back(PortOf(graph, v));
  for (ValueId v : graph.outputs) state->outputs.push_back(PortOf(graph, v));
  return state;
}

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::MakeBucketed(
    const SessionOptions& options, const Import& import, const Check& check) {
  ANEMONE_RETURN_IF_ERROR(CheckChoices(options));
  ANEMONE_RETURN_IF_ERROR(
      PlanningOptions(options.target, options.route, options.policy, options.rewrites).status());
  auto runtime = std::make_shared<LazyRuntime>(ThreadsOf(options), options.ort_library);
  ANEMONE_ASSIGN_OR_RETURN(
      Bucketing buckets,
      Bucketing::Make(options.buckets, ImportingOptions(options.dims, options.shapes, runtime),
                      import));
  auto state = std::make_unique<State>();
  state->observed = options.hazards;
  const Graph& graph = buckets.free().graph;
  for (ValueId v : graph.inputs) state->inputs.push_back(PortOf(graph, v));
  for (ValueId v : graph.outputs) state->outputs.push_back(PortOf(graph, v));
  const auto load = [options, import](const BucketSizes& sizes) -> absl::StatusOr<Session> {
    SessionOptions bound = options;
    bound.buckets.clear();
    bound.dims.insert(sizes.begin(), sizes.end());
    ANEMONE_ASSIGN_OR_RETURN(auto made, MakeUnguarded(bound, import));
    return Session(std::move(made));
  };
  const auto plan = [options, check] {
    return check({.targets = {options.target},
                  .route = options.route,
                  .policy = options.policy,
                  .rewrites = options.rewrites,
                  .dims = options.dims,
                  .shapes = options.shapes,
                  .buckets = options.buckets,
                  .ort_library = options.ort_library});
  };
  state->buckets = std::make_unique<Bucketed>(std::move(buckets), load, plan);
  return state;
}

absl::StatusOr<std::map<std::string, Tensor>> Session::State::Run(
    const std::map<std::string, Tensor>& given, Trace* trace, HazardLog* hazards) const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto found = given.find(inputs[i].name);
    if (found != given.end()) {
      ANEMONE_RETURN_IF_ERROR(CheckInput(inputs[i], found->second));
      tensors.push_back(found->second);
    } else if (inputs[i].has_default) {
      tensors.push_back(model.graph.defaults.at(model.graph.inputs[i]));
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
  absl::StatusOr<std::vector<Tensor>> results;
  arena.execute([&] { results = scheduler->Run(tensors, trace, hazards); });
  ANEMONE_RETURN_IF_ERROR(results.status());
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < outputs.size(); ++i) named[outputs[i].name] = std::move((*results)[i]);
  return named;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

absl::StatusOr<Session> Session::Load(const std::string& path, const SessionOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(
      auto state,
      State::Make(
          options, [path](const ImportOptions& importing) { return ImportFile(path, importing); },
          [path](const CheckOptions& checking) { return anemone::Check(path, checking); }));
  return Session(std::move(state));
}

absl::StatusOr<Session> Session::LoadBytes(absl::string_view model, const SessionOptions& options) {
  const auto bytes = std::make_shared<const std::string>(model);
  ANEMONE_ASSIGN_OR_RETURN(
      auto state,
      State::Make(
          options,
          [bytes](const ImportOptions& importing) { return ImportShared(bytes, "", importing); },
          [bytes](const CheckOptions& checking) { return CheckBytes(*bytes, checking); }));
  return Session(std::move(state));
}

const std::vector<PortInfo>& Session::inputs() const { return state_->inputs; }
const std::vector<PortInfo>& Session::outputs() const { return state_->outputs; }

absl::StatusOr<std::map<std::string, Tensor>> Session::Run(
    const std::map<std::string, Tensor>& inputs) const {
  return Guarded("run the model", [&]() -> absl::StatusOr<std::map<std::string, Tensor>> {
    if (state_->buckets == nullptr) return state_->Run(inputs, nullptr);
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, state_->buckets->Prepare(inputs));
    ANEMONE_ASSIGN_OR_RETURN(auto outputs, job.program->Run(job.inputs));
    return Bucketed::Crop(job, std::move(outputs));
  });
}

absl::StatusOr<BucketUse> Session::UseOf(const std::map<std::string, Tensor>& inputs) const {
  if (state_->buckets == nullptr) {
    return absl::FailedPreconditionError(
        "buckets: this session was loaded without any; set SessionOptions::buckets");
  }
  return Guarded("choose a bucket", [&]() -> absl::StatusOr<BucketUse> {
    ANEMONE_ASSIGN_OR_RETURN(Bucketed::Job job, state_->buckets->Prepare(inputs));
    return std::move(job.use);
  });
}

absl::StatusOr<std::map<std::string, Tensor>> Session::RunTraced(
    const std::map<std::string, Tensor>& inputs, std::string* trace) const {
  if (state_->buckets != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, state_->buckets->Prepare(inputs));
    ANEMONE_ASSIGN_OR_RETURN(auto made, job.program->RunTraced(job.inputs, trace));
    return Bucketed::Crop(job, std::move(made));
  }
  Trace events;
  auto outputs = Guarded("run the model", [&] { return state_->Run(inputs, &events); });
  *trace = events.Take();
  return outputs;
}

absl::StatusOr<std::vector<Hazard>> Session::FindHazards(
    const std::map<std::string, Tensor>& inputs) const {
  if (!state_->observed) {
    return absl::FailedPreconditionError(
        "hazards: this session was not loaded for them; set SessionOptions::hazards");
  }
  if (state_->buckets != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, state_->buckets->Prepare(inputs));
    return job.program->FindHazards(job.inputs);
  }
  HazardLog log(state_->model, state_->plan);
  ANEMONE_RETURN_IF_ERROR(
      Guarded("run the model", [&] { return state_->Run(inputs, nullptr, &log); }).status());
  return log.Take();
}

std::string Session::PlanText(bool every_node) const {
  if (state_->buckets != nullptr) {
    const auto plans = state_->buckets->Plans();
    return plans.ok() ? (*plans)->Text(every_node) : std::string(plans.status().message());
  }
  return anemone::PlanText(state_->model, state_->plan, every_node, /*colour=*/false);
}

std::string Session::PlanJson() const {
  if (state_->buckets != nullptr) {
    const auto plans = state_->buckets->Plans();
    return plans.ok() ? Json::parse((*plans)->Json())["targets"].dump() : "null";
  }
  return anemone::PlanJson(state_->model, state_->plan)
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

PlanSummary Session::Summary() const {
  if (state_->buckets != nullptr) return state_->buckets->summary();
  const Plan& plan = state_->plan;
  return {std::string(plan.target->option_name()), plan.engine_segments(), plan.cpu_segments(),
          plan.macs(), plan.engine_macs()};
}

LoadTimes Session::times() const {
  return state_->buckets != nullptr ? state_->buckets->times() : state_->times;
}

}  // namespace anemone
