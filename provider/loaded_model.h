// provider/loaded_model.h: what a session has loaded: a model with its plan, compiled. Of a model
// with several sizes it is one for each size. session.cc has the functions that users call.
//   loaded_model.cc        makes it: import, plan, compile, cache
//   loaded_model_run.cc    runs it
//   loaded_model_plans.cc  its plans as text, and what runs warned of
#ifndef ANEMONE_PROVIDER_LOADED_MODEL_H_
#define ANEMONE_PROVIDER_LOADED_MODEL_H_

#include <tbb/task_arena.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/session.h"
#include "engine/device.h"
#include "partitioner/plan.h"
#include "provider/buckets/bucketed.h"
#include "provider/load_setup.h"
#include "provider/run_inputs.h"
#include "provider/scheduler.h"

namespace anemone {

class WeightPlaces;  // provider/weights/weight_places.h

// A model and its plan.
struct Planned {
  Model model;
  Plan plan;
};

// The scheduler of a model. New weights put another in its place while runs go on; a run keeps the
// one it began with.
class SchedulerSlot {
 public:
  std::shared_ptr<Scheduler> Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return scheduler_;
  }
  void Set(std::shared_ptr<Scheduler> scheduler) {
    const std::lock_guard<std::mutex> lock(mutex_);
    scheduler_.swap(scheduler);  // the old one is freed after the lock
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Scheduler> scheduler_;
};

struct LoadedModel {
  std::shared_ptr<const void> memory;  // what it has taken of the budget
  Planned planned;                     // of a plan from the cache: what runs, as in PlannedModel
  std::optional<Plan> whole;           // WholeOnCpu(), which runs instead
  std::string line;                    // PlanLine() of a plan from the cache; "" if not known
  PlanSummary summary;
  std::string copied_state;                 // PlanInPlace::refusal
  std::shared_ptr<RangeWarnings> warnings;  // of runs
  std::shared_ptr<RangeWatch> watch;
  std::shared_ptr<DeviceNotes> notes;
  std::unique_ptr<Device> device;
  mutable SchedulerSlot scheduler;
  // Of new weights: to be applied before the first run, while LoadSetup::before does not run.
  std::vector<std::unique_ptr<Reload>> reloads;
  std::shared_ptr<const WeightPlaces> places;    // null: not known
  mutable std::shared_ptr<const Model> as_read;  // for PartImporterOf(): only updates use it
  std::shared_ptr<tbb::task_arena> arena;
  std::vector<PortInfo> inputs, outputs;
  LoadTimes load_times;
  int64_t memory_limit = 0;  // Settings::memory_limit, which bounds each run too
  bool observed = false;     // loaded with Settings::hazards
  // The programs of several sizes, if there are buckets or free dimensions. If not null, it has all
  // except inputs and outputs.
  std::unique_ptr<Bucketed> sizes;

  // A plan from the cache has no reasons: if they are asked for, the model is planned again.
  std::function<absl::StatusOr<Planned>()> plan_again;  // null if `planned` is whole
  bool is_unasked = false;                              // `summary` is that of plan_again() too
  mutable std::mutex replanning;
  mutable std::optional<Planned> replanned;

  // Errors: those of Session::Load().
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Load(const LoadSetup& setup);

  struct Imported {
    Model model;
    std::shared_ptr<const Graph> as_read;  // ImportOptions::as_read
  };
  static absl::StatusOr<Imported> Import(const LoadSetup& setup, ImportOptions importing);
  // Of a model that was changed after its import: it is not in the cache.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> OfEdited(const LoadSetup& setup,
                                                               const ImportOptions& importing,
                                                               Imported edited);

  // As the functions of Session. `resident`: Scheduler::Run(), of a model with one size.
  absl::StatusOr<NamedValues> Run(NamedValues given, Trace* trace, HazardLog* hazards,
                                  Scheduler::Resident* resident = nullptr) const;
  absl::StatusOr<std::vector<Hazard>> FindHazards(const std::map<std::string, Tensor>& given) const;

  std::string PlanLine() const;
  std::string PlanText(bool every_node, int width) const;
  std::string PlanJson() const;
  PlanSummary Summary() const;
  std::vector<std::string> RunWarnings() const;
  LoadTimes times() const { return sizes != nullptr ? sizes->times() : load_times; }

  // Whose inputs and outputs are the model's; of several sizes, with free dimensions.
  const Graph& graph() const {
    return sizes != nullptr ? sizes->free().graph : planned.model.graph;
  }
  bool has_buckets() const { return sizes != nullptr && sizes->has_buckets(); }

 private:
  static std::unique_ptr<LoadedModel> OfSizes(Bucketing buckets, const LoadTimes& begun,
                                              const LoadSetup& setup);
  // Of a model that has been imported, or that is in the cache (null: it is not).
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Make(const LoadSetup& setup,
                                                           const ImportOptions& importing,
                                                           Imported imported,
                                                           bool is_edited = false);
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Find(const LoadSetup& setup,
                                                           const ImportOptions& importing);
  // Of the policy that keeps every node on the CPU: ONNX Runtime reads the model, and it is
  // imported and planned only if someone asks where its nodes run. Null: it must be imported first.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> OnCpu(const LoadSetup& setup,
                                                            const ImportOptions& importing);
  // `cpu_need`: CpuNeedOf() the plan.
  absl::Status TakeResources(const LoadSetup& setup, const MemoryNeed& cpu_need);
  absl::StatusOr<std::vector<CpuPart>> CpuParts(const LoadSetup& setup, const Graph* as_read,
                                                bool is_edited);
  absl::Status Compile(const LoadSetup& setup, std::vector<CpuPart> cpu_parts);
  absl::StatusOr<std::shared_ptr<const Program>> TakeOver(const LoadedModel& before, int segment,
                                                          const Network& network);
  void SetPorts(const Graph& graph);
  void DropWeights();

  absl::StatusOr<const Planned*> WholePlan() const;
  std::string NodeOf(absl::string_view unit) const;
  absl::Status OfUsersNode(const absl::Status& status) const;
  // The sizes are those of each run, and there was none yet.
  bool is_unplanned() const {
    return sizes != nullptr && !has_buckets() && sizes->last() == nullptr;
  }
  // Of several sizes without buckets: the program whose plan is shown. Null before the first run.
  std::shared_ptr<const LoadedModel> Shown() const {
    return sizes == nullptr || has_buckets() ? nullptr : sizes->last();
  }
};

PlanSummary SummaryOf(const Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_LOADED_MODEL_H_
