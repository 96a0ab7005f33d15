#include "provider/loaded_model.h"

#include <algorithm>
#include <utility>

#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "importer/importer.h"
#include "importer/read/bindings.h"
#include "partitioner/plan_text.h"
#include "partitioner/planner.h"
#include "provider/ports.h"
#include "provider/state_in_place.h"
#include "provider/weight_check.h"
#include "provider/weights/derived_parts.h"
#include "provider/weights/same_plan.h"
#include "provider/weights/weight_places.h"
#include "provider/work_limits.h"

namespace anemone {
namespace {

// Times the steps of loading.
class Stopwatch {
 public:
  double Lap() {
    absl::Time now = SteadyNow();
    double took = absl::ToDoubleMilliseconds(now - start_);
    start_ = now;
    return took;
  }

 private:
  absl::Time start_ = SteadyNow();
};

// Imports and plans the model when it is called.
std::function<absl::StatusOr<Planned>()> PlanLater(const LoadSetup& setup,
                                                   const ImportOptions& importing) {
  return [setup, importing]() -> absl::StatusOr<Planned> {
    const WorkLimits limits(setup.settings);
    ANEMONE_ASSIGN_OR_RETURN(Model model, setup.import(importing));
    ANEMONE_ASSIGN_OR_RETURN(PlanInPlace made, PlanStateInPlace(setup, model, [&](const Model& m) {
                               return MakePlan(m, setup.planning);
                             }));
    return Planned{std::move(model), std::move(made.plan)};
  };
}

// A model that is not run in this process is unrolled: another device may run it. New weights are
// for the units of the model that runs, whose plan may be one of the cache, made with settings that
// keep loops.
bool MayLoop(const LoadSetup& setup, bool is_edited) {
  if (!setup.compiles || is_edited) return false;
  return setup.before == nullptr ? setup.keeps_loops : HasLoops(setup.before->planned.plan);
}

}  // namespace

absl::StatusOr<LoadedModel::Imported> LoadedModel::Import(const LoadSetup& setup,
                                                          ImportOptions importing) {
  Imported made;
  importing.as_read = &made.as_read;
  ANEMONE_ASSIGN_OR_RETURN(made.model, setup.import(importing));
  return made;
}

void LoadedModel::SetPorts(const Graph& graph) {
  for (ValueId v : graph.inputs) inputs.push_back(PortOf(graph, v));
  for (ValueId v : graph.outputs) outputs.push_back(PortOf(graph, v));
}

// Frees the constants that programs of the engine have packed, and that sessions of ONNX Runtime
// hold. The others are outputs of the model, and what bodies read.
void LoadedModel::DropWeights() {
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

absl::Status LoadedModel::TakeResources(const LoadSetup& setup, const MemoryNeed& cpu_need) {
  arena = setup.arena;
  warnings = setup.warnings;
  watch = setup.watch;
  notes = setup.notes;
  observed = setup.settings.hazards;
  memory_limit = setup.settings.memory_limit;
  MemoryNeed need = cpu_need;
  if (setup.memory->is_limited()) {
    need = need + EngineNeedOf(planned.model.graph, planned.plan, setup.software,
                               setup.settings.heed_limits);
  }
  const std::string& path = setup.file.path;
  ANEMONE_ASSIGN_OR_RETURN(memory, setup.memory->Take(path.empty() ? "the model" : path, need));
  return absl::OkStatus();
}

// A model without engine segments is one session of its file, if ONNX Runtime reads it.
absl::StatusOr<std::vector<CpuPart>> LoadedModel::CpuParts(const LoadSetup& setup,
                                                           const Graph* as_read, bool is_edited) {
  const Graph& graph = planned.model.graph;
  const auto open = [&] { return setup.runtime->Get(); };
  const bool is_all_cpu = summary.engine_segments == 0 && summary.cpu_segments > 0;
  if (is_all_cpu && setup.is_of_file && !is_edited &&
      (as_read == nullptr || IsSafeForRuntime(graph, planned.plan, *as_read))) {
    ANEMONE_RETURN_IF_ERROR(CheckForRuntime(graph, planned.plan));
    whole = WholeOnCpu(graph, planned.plan);
    std::vector<CpuModel> models(1);
    models[0].is_file = true;
    auto parts = MakeCpuParts(open, graph, std::move(models), *whole, setup.file);
    if (parts.ok()) return parts;
    whole.reset();
  }
  return MakeCpuParts(open, graph, planned.plan, as_read);
}

// The program of `before`, which a reload will change; or a new one, if that is not possible.
absl::StatusOr<std::shared_ptr<const Program>> LoadedModel::TakeOver(const LoadedModel& before,
                                                                     int segment,
                                                                     const Network& network) {
  const std::shared_ptr<const Program> program = before.scheduler.Get()->program(segment);
  auto reload = before.device->PrepareReload(*program, network);
  if (reload.ok()) {
    reloads.push_back(*std::move(reload));
    return program;
  }
  if (!absl::IsUnimplemented(reload.status())) return reload.status();
  return device->Compile(network, *planned.plan.target, planned.plan.route);
}

absl::Status LoadedModel::Compile(const LoadSetup& setup, std::vector<CpuPart> cpu_parts) {
  ANEMONE_ASSIGN_OR_RETURN(
      device, MakeDevice(setup.settings, *planned.plan.target, setup.software,
                         [notes = notes](const std::string& note) { notes->Add(note); }));
  Scheduler::MakeProgram make;
  if (setup.before != nullptr && setup.before->device != nullptr && device->reloads()) {
    make = [&](int segment, const Network& network) {
      return TakeOver(*setup.before, segment, network);
    };
  }
  absl::Status compiled;
  arena->execute(WithDeadline([&] {
    auto made = Scheduler::Make(
        planned.model.graph, whole ? *whole : planned.plan, *device,
        [&] { return setup.runtime->Get(); }, setup.settings.heed_limits, watch.get(),
        std::move(cpu_parts), make);
    compiled = made.status();
    if (made.ok()) scheduler.Set(*std::move(made));
  }));
  return compiled;
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Make(const LoadSetup& setup,
                                                               const ImportOptions& importing,
                                                               Imported imported, bool is_edited) {
  auto made = std::make_unique<LoadedModel>();
  Planned& planned = made->planned;
  planned.model = std::move(imported.model);
  Stopwatch watch;
  const auto plan = [&](const Model& model) {
    return MayLoop(setup, is_edited) ? MakeRunPlan(model, setup.planning)
                                     : MakePlan(model, setup.planning);
  };
  if (is_edited) {
    ANEMONE_ASSIGN_OR_RETURN(planned.plan, plan(planned.model));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(PlanInPlace made_plan, PlanStateInPlace(setup, planned.model, plan));
    planned.plan = std::move(made_plan.plan);
    made->copied_state = std::move(made_plan.refusal);
  }
  setup.arena->execute([&] { WarnOfWeights(planned.model, planned.plan); });
  made->load_times.plan = watch.Lap();
  made->summary = SummaryOf(planned.plan);
  if (HasLoops(planned.plan)) {  // who asks where nodes run gets the plan with all units
    made->plan_again = PlanLater(setup, importing);
    made->is_unasked = true;
  }
  if (setup.before != nullptr) ANEMONE_RETURN_IF_ERROR(CheckSamePlan(*setup.before, *made));
  MemoryNeed cpu_need;
  // Who runs what is stored, and is not compiled here, may have a limit.
  if (setup.memory->is_limited() || !setup.compiles) {
    cpu_need = CpuNeedOf(planned.model.graph, planned.plan);
  }
  ANEMONE_RETURN_IF_ERROR(made->TakeResources(setup, cpu_need));
  const MemoryLimit::Pause taken;
  ANEMONE_ASSIGN_OR_RETURN(
      std::vector<CpuPart> parts,
      made->CpuParts(setup, is_edited ? nullptr : imported.as_read.get(), is_edited));
  std::vector<CpuModel> models;
  models.reserve(parts.size());
  for (CpuPart& part : parts) models.push_back(std::move(part.model));
  if (setup.compiles) ANEMONE_RETURN_IF_ERROR(made->Compile(setup, std::move(parts)));
  if (!setup.settings.hazards && imported.as_read != nullptr) {
    WeightPlaces places(*imported.as_read, planned.model, planned.plan);
    if (setup.new_weights != nullptr || !setup.compiles) {  // others may come: find more for them
      places.SetDerived(FindDerivedWeights(*imported.as_read, planned.model, planned.plan, places,
                                           PartImporterOf(setup, importing, made->as_read)));
    }
    made->places = std::make_shared<const WeightPlaces>(std::move(places));
  }
  if (setup.cache != nullptr && !is_edited) {
    const PlanFacts facts = {
        .line = made->is_unasked ? "" : anemone::PlanLine(planned.model, planned.plan),
        .summary = made->summary,
        .copied_state = made->copied_state,
        .cpu_need = cpu_need,
        .places = made->places};
    setup.cache->Store(importing, planned.model.graph, made->whole ? *made->whole : planned.plan,
                       models, facts);
  }
  if (!setup.settings.hazards) made->DropWeights();
  made->load_times.compile = watch.Lap();
  made->SetPorts(planned.model.graph);
  return made;
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::OfEdited(const LoadSetup& setup,
                                                                   const ImportOptions& importing,
                                                                   Imported edited) {
  return Make(setup, importing, std::move(edited), /*is_edited=*/true);
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Find(const LoadSetup& setup,
                                                               const ImportOptions& importing) {
  Stopwatch watch;
  if (setup.cache == nullptr) return nullptr;
  std::optional<PlannedModel> found = setup.cache->Find(importing);
  if (!found) return nullptr;
  auto made = std::make_unique<LoadedModel>();
  made->planned = {.model = {.graph = std::move(found->graph)}, .plan = std::move(found->plan)};
  made->line = std::move(found->facts.line);
  made->summary = std::move(found->facts.summary);
  made->places = std::move(found->facts.places);
  made->copied_state = std::move(found->facts.copied_state);
  made->plan_again = PlanLater(setup, importing);
  made->is_unasked = made->line.empty();  // its plan has loops
  made->load_times.load = setup.opened + watch.Lap();
  ANEMONE_RETURN_IF_ERROR(made->TakeResources(setup, found->facts.cpu_need));
  const MemoryLimit::Pause taken;
  ANEMONE_ASSIGN_OR_RETURN(
      std::vector<CpuPart> parts,
      MakeCpuParts([&] { return setup.runtime->Get(); }, made->planned.model.graph,
                   std::move(found->cpu_models), made->planned.plan, setup.file));
  ANEMONE_RETURN_IF_ERROR(made->Compile(setup, std::move(parts)));
  made->DropWeights();
  made->load_times.compile = watch.Lap();
  made->SetPorts(made->planned.model.graph);
  return made;
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::OnCpu(const LoadSetup& setup,
                                                                const ImportOptions& importing) {
  const Settings& settings = setup.settings;
  const bool is_plain = settings.dims.empty() && settings.shapes.empty() && !settings.hazards &&
                        !setup.memory->is_limited() && settings.limits.empty() &&
                        settings.overridable.empty();
  if (!setup.planning.policy.cpu_only || !is_plain || !setup.is_of_file) return nullptr;
  Stopwatch watch;
  const auto opened = setup.runtime->Get();
  if (!opened.ok()) return nullptr;
  std::optional<WholeModel> model = OpenWhole(*opened, setup.file);
  if (!model) return nullptr;
  auto made = std::make_unique<LoadedModel>();
  made->planned.model.graph = std::move(model->graph);
  made->planned.plan = {.target = setup.planning.target, .route = setup.planning.route};
  made->whole = WholeOnCpu(made->planned.model.graph, made->planned.plan);
  made->plan_again = PlanLater(setup, importing);
  made->is_unasked = true;
  made->summary.cpu_segments = 1;
  ANEMONE_RETURN_IF_ERROR(made->TakeResources(setup, {}));
  std::vector<CpuPart> parts;
  parts.push_back(std::move(model->part));
  ANEMONE_RETURN_IF_ERROR(made->Compile(setup, std::move(parts)));
  made->load_times.compile = watch.Lap();
  made->SetPorts(made->planned.model.graph);
  return made;
}

std::unique_ptr<LoadedModel> LoadedModel::OfSizes(Bucketing buckets, const LoadTimes& begun,
                                                  const LoadSetup& setup) {
  auto made = std::make_unique<LoadedModel>();
  made->observed = setup.settings.hazards;
  made->warnings = setup.warnings;
  made->notes = setup.notes;
  made->SetPorts(buckets.free().graph);
  const auto load =
      [setup](
          const ImportOptions& importing) -> absl::StatusOr<std::shared_ptr<const LoadedModel>> {
    const MemoryLimit memory(setup.settings.memory_limit);
    const ModelLimits limits(setup.settings.limits);
    // A program of the cache has the weights that the files have now.
    if (setup.files != nullptr) ANEMONE_RETURN_IF_ERROR(setup.files->Check());
    ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<LoadedModel> made, Find(setup, importing));
    if (made != nullptr) return made;
    Stopwatch watch;
    ANEMONE_ASSIGN_OR_RETURN(Imported imported, Import(setup, importing));
    const double took = watch.Lap();
    ANEMONE_ASSIGN_OR_RETURN(made, Make(setup, importing, std::move(imported)));
    made->load_times.load = took;
    return made;
  };
  const Bucketed::Options options = {.planning = setup.planning,
                                     .most_exact = static_cast<size_t>(setup.settings.max_plans),
                                     .memory_is_limited = setup.memory->is_limited(),
                                     .begun = begun};
  made->sizes = std::make_unique<Bucketed>(std::move(buckets), options, load);
  return made;
}

absl::StatusOr<std::unique_ptr<LoadedModel>> LoadedModel::Load(const LoadSetup& setup) {
  const Settings& settings = setup.settings;
  const MemoryLimit memory(settings.memory_limit);
  const ModelLimits limits(settings.limits);
  const ImportOptions importing = ImportingOptions(settings, setup.runtime);
  Stopwatch watch;
  if (!settings.buckets.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(Bucketing buckets,
                             Bucketing::Make(settings.buckets, importing, setup.import));
    return OfSizes(std::move(buckets), {}, setup);
  }
  ANEMONE_ASSIGN_OR_RETURN(auto whole, OnCpu(setup, importing));
  if (whole != nullptr) return whole;
  ANEMONE_ASSIGN_OR_RETURN(auto found, Find(setup, importing));
  if (found != nullptr) return found;
  ANEMONE_ASSIGN_OR_RETURN(Imported imported, Import(setup, importing));
  const LoadTimes begun = {.load = setup.opened + watch.Lap()};
  if (!UnboundDims(imported.model).empty()) {
    return OfSizes(Bucketing::OfArrays(std::move(imported.model), importing, setup.import), begun,
                   setup);
  }
  ANEMONE_ASSIGN_OR_RETURN(auto made, Make(setup, importing, std::move(imported)));
  made->load_times.load = begun.load;
  return made;
}

}  // namespace anemone
