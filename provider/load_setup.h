// provider/load_setup.h: what all programs of a session share: how its model is imported and
// planned, one thread budget and one of memory.
#ifndef ANEMONE_PROVIDER_LOAD_SETUP_H_
#define ANEMONE_PROVIDER_LOAD_SETUP_H_

#include <tbb/task_arena.h>

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "engine/device.h"
#include "importer/new_weights.h"
#include "partitioner/plan.h"
#include "provider/adapters/adapters.h"
#include "provider/buckets/bucketing.h"
#include "provider/cpu_parts.h"
#include "provider/devices.h"
#include "provider/importing.h"
#include "provider/memory_budget.h"
#include "provider/program_store.h"
#include "provider/range_watch.h"
#include "provider/unchanged_file.h"

namespace anemone {

struct LoadedModel;

struct LoadSetup {
  Settings settings;
  ModelFile file;
  std::shared_ptr<const UnchangedFile> files;  // null: the model is in memory
  bool is_of_file = true;  // ONNX Runtime may read the file itself: it has the weights to run with
  Bucketing::Import import;
  std::shared_ptr<const ProgramStore> cache;  // null: there is none
  double opened = 0;     // milliseconds spent so far: opening a compiled model, the cache, adapters
  bool compiles = true;  // false: the model is only planned, for `cache` to store it
  std::shared_ptr<const Adapters> adapters;  // their modules are in `import`
  // Of new weights: the model that runs. The new one must have the same plan, and takes over its
  // programs if the device can reload them. Null: there is none.
  std::shared_ptr<const LoadedModel> before;
  // `import` puts them in place of the file's. Null: there are none.
  std::shared_ptr<const NewWeights> new_weights;
  PlanOptions planning;
  // The pairs whose rows the plan may write in place (state_in_place.h): those of the settings; of
  // a compiled model, those that it was compiled with.
  std::map<std::string, std::string> state_in_place;
  bool keeps_loops = false;  // plans may have loops (MakeRunPlan())
  SoftwareOptions software;
  std::shared_ptr<MemoryBudget> memory;
  std::shared_ptr<LazyRuntime> runtime;
  std::shared_ptr<tbb::task_arena> arena;
  std::shared_ptr<RangeWarnings> warnings;  // of runs
  std::shared_ptr<RangeWatch> watch;
  std::shared_ptr<DeviceNotes> notes;
};

// Of the model at `path`, or in memory if `bytes` is not null. Errors: those of settings.
absl::StatusOr<LoadSetup> MakeLoadSetup(const Settings& settings, const std::string& path,
                                        std::shared_ptr<const std::string> bytes);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_LOAD_SETUP_H_
