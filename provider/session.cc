#include "anemone/session.h"

#include <tbb/task_arena.h>

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/guarded.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "importer/importer.h"
#include "importer/read/bindings.h"
#include "partitioner/plan.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "partitioner/unit_names.h"
#include "provider/buckets/bucketed.h"
#include "provider/buckets/bucketing.h"
#include "provider/devices.h"
#include "provider/importing.h"
#include "provider/memory_budget.h"
#include "provider/ports.h"
#include "provider/range_watch.h"
#include "provider/run_inputs.h"
#include "provider/scheduler.h"
#include "provider/session_cache.h"
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

// Shared by all programs of a session: how the model is imported and planned, one thread budget
// and one of memory.
struct Shared {
  Settings settings;
  ModelFile file;
  Bucketing::Import import;
  std::shared_ptr<const SessionCache> cache;  // null: there is none
  PlanOptions planning;
  SoftwareOptions software;
  std::shared_ptr<MemoryBudget> memory;
  std::shared_ptr<LazyRuntime> runtime;
  std::shared_ptr<tbb::task_arena> arena;
  std::shared_ptr<RangeWarnings> warnings;
  std::shared_ptr<RangeWatch> watch;
  std::shared_ptr<DeviceNotes> notes;
};

absl::StatusOr<Shared> Share(const Settings& settings, Bucketing::Import import,
                             const std::string& path, std::shared_ptr<const std::string> bytes) {
  ANEMONE_RETURN_IF_ERROR(CheckRunSettings(settings));
  Shared shared{
      .settings = settings,
      // With operators of ai.anemone ONNX Runtime refuses the file, and reads nodes instead.
      .file = {.path = path, .bytes = bytes, .dims = settings.dims, .custom_operators = false},
      .import = std::move(import)};
  ANEMONE_ASSIGN_OR_RETURN(shared.planning, RunPlanOptionsOf(settings));
  shared.planning.bodies = true;
  shared.software.observed = settings.hazards;
  ANEMONE_ASSIGN_OR_RETURN(shared.software.numerics, NumericsMode::Parse(settings.numerics));
  shared.memory = std::make_shared<MemoryBudget>(settings.memory_limit);
  const int threads = ThreadsOf(settings.threads);
  shared.runtime = std::make_shared<LazyRuntime>(threads, settings.ort_library);
  shared.arena = std::make_shared<tbb::task_arena>(threads);
  shared.warnings = std::make_shared<RangeWarnings>();
  shared.watch = std::make_shared<RangeWatch>(
      [warnings = shared.warnings](RangeWarning warning) { warnings->Add(std::move(warning)); });
  shared.notes = std::make_shared<DeviceNotes>();
  shared.cache = SessionCache::Open(settings, path, std::move(bytes));
  return shared;
}

struct Imported {
  Model model;
  std::shared_ptr<const Graph> as_read;  // ImportOptions::as_read
};

absl::StatusOr<Imported> Import(const Shared& shared, ImportOptions importing) {
  Imported made;
  importing.as_read = &made.as_read;
  ANEMONE_ASSIGN_OR_RETURN(made.model, shared.import(importing));
  return made;
}

// A model and its plan.
struct Planned {
  Model model;
  Plan plan;
};

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

}  // namespace

struct Session::State {
  std::shared_ptr<const void> memory;  // what it has taken of the budget
  Planned planned;                     // of a plan from the cache: what runs, as in PlannedModel
  std::optional<Plan> whole;           // WholeOnCpu(), which runs instead
  std::string line;                    // PlanLine()
  PlanSummary summary;
  std::shared_ptr<RangeWarnings> warnings;  // of runs
  std::shared_ptr<RangeWatch> watch;
  std::shared_ptr<DeviceNotes> notes;
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

  // A plan from the cache has no reasons: if they are asked for, the model is planned again.
  std::function<absl::StatusOr<Planned>()> plan_again;  // null if `planned` is whole
  bool is_unasked = false;  // `line` and `summary` are those of plan_again() too
  mutable std::mutex replanning;
  mutable std::optional<absl::StatusOr<Planned>> replanned;

  static absl::StatusOr<Session> Load(const Shared& shared);
  static Session Of(Bucketing buckets, const LoadTimes& begun, const Shared& shared);
  // Of a model that has been imported, or that is in the cache (null: it is not).
  static absl::StatusOr<std::unique_ptr<State>> Make(const Shared& shared,
                                                     const ImportOptions& importing,
                                                     Imported imported);
  static absl::StatusOr<std::unique_ptr<State>> Find(const Shared& shared,
                                                     const ImportOptions& importing);
  // Of the policy that keeps every node on the CPU: ONNX Runtime reads the model, and it is
  // imported and planned only if someone asks where its nodes run. Null: it must be imported first.
  static absl::StatusOr<std::unique_ptr<State>> OnCpu(const Shared& shared,
                                                      const ImportOptions& importing);
  absl::Status TakeResources(const Shared& shared, const MemoryNeed& need);
  absl::StatusOr<std::vector<CpuPart>> CpuParts(const Shared& shared, const Graph* as_read);
  absl::Status Compile(const Shared& shared, std::vector<CpuPart> cpu_parts);
  static std::function<absl::StatusOr<Planned>()> PlanLater(const Shared& shared,
                                                            const ImportOptions& importing);
  absl::StatusOr<const Planned*> WholePlan() const;
  std::string NodeOf(absl::string_view unit) const;
  void SetPorts(const Graph& graph);
  void DropWeights();
  bool has_buckets() const { return sizes != nullptr && sizes->has_buckets(); }
  // The sizes are those of each run, and there was none yet.
  bool is_unplanned() const {
    return sizes != nullptr && !has_buckets() && sizes->last() == nullptr;
  }
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

// Frees the constants that programs of the engine have packed, and that sessions of ONNX Runtime
// hold. The others are outputs of the model, and what bodies read.
void Session::State::DropWeights() {
  Graph& graph = planned.model.graph;
  std::vector<bool> kept(graph.values.size());
  const auto keep = [&](const std::vector<ValueId>& values) {
    for (ValueId v : values) {
      if (v != kNone) kept[v] = true;
    }
  };
  keep(graph.outputs);
  for (Segment& segment : planned.plan.segments) {
    for (Unit& unit : segment.network.units) unit.weights.clear();
    for (Constant& constant : segment.network.constants) constant.tensor = Tensor();
    if (segment.bodies.empty()) continue;
    for (NodeId id : segment.nodes) {
      keep(graph.nodes[id].inputs);
      keep(graph.nodes[id].captures);
    }
  }
  for (size_t v = 0; v < kept.size(); ++v) {
    if (!kept[v]) graph.values[v].constant.reset();
  }
}

absl::Status Session::State::TakeResources(const Shared& shared, const MemoryNeed& need) {
  arena = shared.arena;
  warnings = shared.warnings;
  watch = shared.watch;
  notes = shared.notes;
  observed = shared.settings.hazards;
  const std::string& path = shared.file.path;
  ANEMONE_ASSIGN_OR_RETURN(memory, shared.memory->Take(path.empty() ? "the model" : path, need));
  // A model without CPU segments runs without ONNX Runtime.
  if (summary.cpu_segments > 0) {
    ANEMONE_ASSIGN_OR_RETURN(runtime, shared.runtime->Get());
  }
  return absl::OkStatus();
}

// A model without engine segments is one session of its file, if ONNX Runtime reads it.
absl::StatusOr<std::vector<CpuPart>> Session::State::CpuParts(const Shared& shared,
                                                              const Graph* as_read) {
  const Graph& graph = planned.model.graph;
  if (runtime != nullptr && summary.engine_segments == 0) {
    whole = WholeOnCpu(graph, planned.plan);
    std::vector<CpuModel> models(1);
    models[0].is_file = true;
    auto parts = MakeCpuParts(runtime, graph, std::move(models), *whole, shared.file);
    if (parts.ok()) return parts;
    whole.reset();
  }
  return MakeCpuParts(runtime, graph, planned.plan, as_read);
}

absl::Status Session::State::Compile(const Shared& shared, std::vector<CpuPart> cpu_parts) {
  ANEMONE_ASSIGN_OR_RETURN(
      device, MakeDevice(shared.settings, *planned.plan.target, shared.software,
                         [notes = notes](const std::string& note) { notes->Add(note); }));
  absl::Status compiled;
  arena->execute([&] {
    auto made =
        Scheduler::Make(planned.model.graph, whole ? *whole : planned.plan, *device, runtime,
                        shared.settings.heed_limits, watch.get(), std::move(cpu_parts));
    compiled = made.status();
    if (made.ok()) scheduler = *std::move(made);
  });
  return compiled;
}

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::Make(const Shared& shared,
                                                                     const ImportOptions& importing,
                                                                     Imported imported) {
  auto state = std::make_unique<State>();
  Planned& planned = state->planned;
  planned.model = std::move(imported.model);
  Stopwatch watch;
  ANEMONE_ASSIGN_OR_RETURN(planned.plan, MakePlan(planned.model, shared.planning));
  shared.arena->execute([&] { WarnOfWeights(planned.model, planned.plan); });
  state->times.plan = watch.Lap();
  state->summary = SummaryOf(planned.plan);
  state->line = anemone::PlanLine(planned.model, planned.plan);
  MemoryNeed need;
  if (shared.memory->is_limited()) {
    need = NeedOf(planned.model.graph, planned.plan, shared.software, shared.settings.heed_limits);
  }
  ANEMONE_RETURN_IF_ERROR(state->TakeResources(shared, need));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<CpuPart> parts,
                           state->CpuParts(shared, imported.as_read.get()));
  std::vector<CpuModel> models;
  models.reserve(parts.size());
  for (CpuPart& part : parts) models.push_back(std::move(part.model));
  ANEMONE_RETURN_IF_ERROR(state->Compile(shared, std::move(parts)));
  if (shared.cache != nullptr) {
    shared.cache->Store(importing, planned.model.graph, state->whole ? *state->whole : planned.plan,
                        models, {.line = state->line, .summary = state->summary, .need = need});
  }
  if (!shared.settings.hazards) state->DropWeights();
  state->times.compile = watch.Lap();
  state->SetPorts(planned.model.graph);
  return state;
}

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::Find(
    const Shared& shared, const ImportOptions& importing) {
  Stopwatch watch;
  if (shared.cache == nullptr) return nullptr;
  std::optional<PlannedModel> found = shared.cache->Find(importing);
  if (!found) return nullptr;
  auto state = std::make_unique<State>();
  state->planned = {.model = {.graph = std::move(found->graph)}, .plan = std::move(found->plan)};
  state->line = std::move(found->facts.line);
  state->summary = std::move(found->facts.summary);
  state->plan_again = PlanLater(shared, importing);
  state->times.load = watch.Lap();
  ANEMONE_RETURN_IF_ERROR(state->TakeResources(shared, found->facts.need));
  ANEMONE_ASSIGN_OR_RETURN(
      std::vector<CpuPart> parts,
      MakeCpuParts(state->runtime, state->planned.model.graph, std::move(found->cpu_models),
                   state->planned.plan, shared.file));
  ANEMONE_RETURN_IF_ERROR(state->Compile(shared, std::move(parts)));
  state->DropWeights();
  state->times.compile = watch.Lap();
  state->SetPorts(state->planned.model.graph);
  return state;
}

absl::StatusOr<std::unique_ptr<Session::State>> Session::State::OnCpu(
    const Shared& shared, const ImportOptions& importing) {
  const Settings& settings = shared.settings;
  const bool is_plain = settings.dims.empty() && settings.shapes.empty() && !settings.hazards &&
                        !shared.memory->is_limited();
  if (!shared.planning.policy.cpu_only || !is_plain) return nullptr;
  Stopwatch watch;
  const auto opened = shared.runtime->Get();
  if (!opened.ok()) return nullptr;
  std::optional<WholeModel> model = OpenWhole(*opened, shared.file);
  if (!model) return nullptr;
  auto state = std::make_unique<State>();
  state->planned.model.graph = std::move(model->graph);
  state->planned.plan = {.target = shared.planning.target, .route = shared.planning.route};
  state->whole = WholeOnCpu(state->planned.model.graph, state->planned.plan);
  state->plan_again = PlanLater(shared, importing);
  state->is_unasked = true;
  state->summary.cpu_segments = 1;
  ANEMONE_RETURN_IF_ERROR(state->TakeResources(shared, {}));
  std::vector<CpuPart> parts;
  parts.push_back(std::move(model->part));
  ANEMONE_RETURN_IF_ERROR(state->Compile(shared, std::move(parts)));
  state->times.compile = watch.Lap();
  state->SetPorts(state->planned.model.graph);
  return state;
}

std::function<absl::StatusOr<Planned>()> Session::State::PlanLater(const Shared& shared,
                                                                   const ImportOptions& importing) {
  return [shared, importing]() -> absl::StatusOr<Planned> {
    ANEMONE_ASSIGN_OR_RETURN(Model model, shared.import(importing));
    ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(model, shared.planning));
    return Planned{std::move(model), std::move(plan)};
  };
}

absl::StatusOr<const Planned*> Session::State::WholePlan() const {
  if (!plan_again) return &planned;
  return Guarded("plan the model", [&]() -> absl::StatusOr<const Planned*> {
    const std::lock_guard<std::mutex> lock(replanning);
    if (!replanned) replanned = plan_again();
    ANEMONE_RETURN_IF_ERROR(replanned->status());
    return &**replanned;
  });
}

// "'mul' (Mul)": the model's node of a unit; "" if it is not known.
std::string Session::State::NodeOf(absl::string_view unit) const {
  if (sizes != nullptr) {
    const auto last = sizes->last();
    return last == nullptr ? "" : last->state_->NodeOf(unit);
  }
  const auto whole = WholePlan();
  if (!whole.ok()) return "";
  const Origin* origin = UnitNames((*whole)->model, (*whole)->plan).Find(unit);
  if (origin == nullptr) return "";
  return absl::StrCat(
      origin->name.empty() ? origin->id : absl::StrCat("'", Printable(origin->name), "'"), " (",
      Printable(origin->op_type), ")");
}

Session Session::State::Of(Bucketing buckets, const LoadTimes& begun, const Shared& shared) {
  auto state = std::make_unique<State>();
  state->observed = shared.settings.hazards;
  state->warnings = shared.warnings;
  state->notes = shared.notes;
  state->SetPorts(buckets.free().graph);
  const auto load = [shared](const ImportOptions& importing) -> absl::StatusOr<Session> {
    ANEMONE_ASSIGN_OR_RETURN(auto found, Find(shared, importing));
    if (found != nullptr) return Session(std::move(found));
    Stopwatch watch;
    ANEMONE_ASSIGN_OR_RETURN(Imported imported, Import(shared, importing));
    const double took = watch.Lap();
    ANEMONE_ASSIGN_OR_RETURN(auto made, Make(shared, importing, std::move(imported)));
    made->times.load = took;
    return Session(std::move(made));
  };
  const Bucketed::Options options = {.planning = shared.planning,
                                     .most_exact = static_cast<size_t>(shared.settings.max_plans),
                                     .memory_is_limited = shared.memory->is_limited(),
                                     .begun = begun};
  state->sizes = std::make_unique<Bucketed>(std::move(buckets), options, load);
  return Session(std::move(state));
}

absl::StatusOr<Session> Session::State::Load(const Shared& shared) {
  const Settings& settings = shared.settings;
  const ImportOptions importing = ImportingOptions(settings, shared.runtime);
  Stopwatch watch;
  if (!settings.buckets.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(Bucketing buckets,
                             Bucketing::Make(settings.buckets, importing, shared.import));
    return Of(std::move(buckets), {}, shared);
  }
  ANEMONE_ASSIGN_OR_RETURN(auto whole, OnCpu(shared, importing));
  if (whole != nullptr) return Session(std::move(whole));
  ANEMONE_ASSIGN_OR_RETURN(auto found, Find(shared, importing));
  if (found != nullptr) return Session(std::move(found));
  ANEMONE_ASSIGN_OR_RETURN(Imported imported, Import(shared, importing));
  const LoadTimes begun = {.load = watch.Lap()};
  if (!UnboundDims(imported.model).empty()) {
    return Of(Bucketing::OfArrays(std::move(imported.model), importing, shared.import), begun,
              shared);
  }
  ANEMONE_ASSIGN_OR_RETURN(auto state, Make(shared, importing, std::move(imported)));
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
                           InputsInOrder(planned.model.graph, inputs, given));
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
  return Guarded("load the model", [&]() -> absl::StatusOr<Session> {
    const auto import = [path](const ImportOptions& importing) {
      return ImportFile(path, importing);
    };
    ANEMONE_ASSIGN_OR_RETURN(const Shared shared, Share(settings, import, path, nullptr));
    return State::Load(shared);
  });
}

absl::StatusOr<Session> Session::LoadBytes(absl::string_view model, const Settings& settings) {
  return Guarded("load the model", [&]() -> absl::StatusOr<Session> {
    const auto bytes = std::make_shared<const std::string>(model);
    const auto import = [bytes](const ImportOptions& importing) {
      return ImportShared(bytes, "", importing);
    };
    ANEMONE_ASSIGN_OR_RETURN(const Shared shared, Share(settings, import, "", bytes));
    return State::Load(shared);
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
    HazardLog log(state_->planned.model, state_->planned.plan);
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
  if (state_->is_unplanned()) return NotPlannedLine(state_->sizes->target());
  if (state_->sizes != nullptr) {
    const auto plans = state_->sizes->Plans();
    return plans.ok() ? (*plans)->Lines() : std::string(plans.status().message());
  }
  if (state_->is_unasked) {
    const auto planned = state_->WholePlan();
    return planned.ok() ? anemone::PlanLine((*planned)->model, (*planned)->plan)
                        : std::string(planned.status().message());
  }
  return state_->line;
}

std::string Session::PlanText(bool every_node, int width) const {
  const PlanTextOptions options = {.every_node = every_node, .width = width};
  if (const auto shown = state_->Shown()) return shown->PlanText(every_node, width);
  if (state_->is_unplanned()) {
    return NotPlannedText(state_->sizes->free(), state_->sizes->target(), width);
  }
  if (state_->sizes != nullptr) {
    const auto plans = state_->sizes->Plans();
    return plans.ok() ? (*plans)->Text(options) : std::string(plans.status().message());
  }
  const auto planned = state_->WholePlan();
  if (!planned.ok()) return std::string(planned.status().message());
  return anemone::PlanText((*planned)->model, (*planned)->plan, options);
}

std::string Session::PlanJson() const {
  if (const auto shown = state_->Shown()) return shown->PlanJson();
  if (state_->sizes != nullptr) {
    const auto plans = state_->sizes->Plans();
    if (!plans.ok()) return "null";
    const std::vector<std::string> targets = (*plans)->TargetTexts();
    if (!state_->has_buckets()) return targets.front();
    return absl::StrCat("[", absl::StrJoin(targets, ","), "]");
  }
  const auto planned = state_->WholePlan();
  return planned.ok() ? anemone::PlanJsonText((*planned)->model, (*planned)->plan) : "null";
}

PlanSummary Session::Summary() const {
  if (state_->sizes != nullptr) {
    const auto last = state_->sizes->last();
    return last == nullptr ? PlanSummary() : last->Summary();
  }
  if (state_->is_unasked) {
    const auto planned = state_->WholePlan();
    if (planned.ok()) return SummaryOf((*planned)->plan);
  }
  return state_->summary;
}

std::vector<std::string> Session::RunWarnings() const {
  std::vector<std::string> texts = state_->notes->Texts();
  for (std::string& text :
       state_->warnings->Texts([&](absl::string_view unit) { return state_->NodeOf(unit); })) {
    texts.push_back(std::move(text));
  }
  return texts;
}

LoadTimes Session::times() const {
  return state_->sizes != nullptr ? state_->sizes->times() : state_->times;
}

}  // namespace anemone
