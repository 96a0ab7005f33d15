#include "provider/load_setup.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "importer/importer.h"
#include "provider/adapters/row_proof.h"
#include "provider/session_cache.h"
#include "provider/settings.h"

namespace anemone {

namespace {

// Whether plans that run with these settings have loops (MakeRunPlan()): nothing looks at the units
// of a loop one by one.
bool KeepsLoops(const Settings& settings, const PlanOptions& planning,
                const NumericsMode& numerics) {
  const Policy& policy = planning.policy;
  return !numerics.is_exact() && planning.route == Route::kNetplist &&
         policy.aim == Policy::Aim::kMaxEngine && policy.refused_units.empty() &&
         !settings.clamp_activations && !settings.hazards && !settings.heed_limits &&
         settings.memory_limit == 0 && IsSoftwareOnly(settings) && !settings.device_limits;
}

}  // namespace

absl::StatusOr<LoadSetup> MakeLoadSetup(const Settings& settings, const std::string& path,
                                        std::shared_ptr<const std::string> bytes) {
  ANEMONE_RETURN_IF_ERROR(CheckRunSettings(settings));
  LoadSetup setup{
      .settings = settings,
      // With operators of ai.anemone ONNX Runtime refuses the file, and reads nodes instead.
      .file = {.path = path, .bytes = bytes, .dims = settings.dims, .custom_operators = false}};
  if (bytes == nullptr) {
    setup.files = std::make_shared<const UnchangedFile>(path, settings);
    setup.import = [files = setup.files](const ImportOptions& options) {
      return files->Import(options);
    };
  } else {
    setup.import = [bytes](const ImportOptions& options) {
      return ImportShared(bytes, "", options);
    };
  }
  ANEMONE_ASSIGN_OR_RETURN(setup.planning, RunPlanOptionsOf(settings));
  setup.planning.bodies = true;
  setup.state_in_place = settings.state;
  setup.is_of_file = !settings.last_logits;
  setup.software.observed = settings.hazards;
  ANEMONE_ASSIGN_OR_RETURN(setup.software.numerics, NumericsMode::Parse(settings.numerics));
  setup.keeps_loops = KeepsLoops(settings, setup.planning, setup.software.numerics);
  setup.memory = std::make_shared<MemoryBudget>(settings.memory_limit);
  const int threads = ThreadsOf(settings.threads);
  setup.runtime =
      std::make_shared<LazyRuntime>(threads, settings.ort_library, settings.memory_limit);
  setup.arena = std::make_shared<tbb::task_arena>(threads);
  setup.warnings = std::make_shared<RangeWarnings>();
  setup.watch = std::make_shared<RangeWatch>(
      [warnings = setup.warnings](RangeWarning warning) { warnings->Add(std::move(warning)); });
  setup.notes = std::make_shared<DeviceNotes>();
  ANEMONE_ASSIGN_OR_RETURN(Adapters adapters,
                           Adapters::Read(settings.adapters, settings.adapter_rows));
  const auto modules = adapters.modules();
  const std::vector<std::string> given = adapters.GivenInputs();
  setup.adapters = std::make_shared<const Adapters>(std::move(adapters));
  if (modules != nullptr || !given.empty()) {
    setup.import = [import = std::move(setup.import), modules,
                    given](const ImportOptions& options) {
      ImportOptions with = options;
      with.adapters = modules;
      with.given_inputs.insert(with.given_inputs.end(), given.begin(), given.end());
      return import(with);
    };
  }
  if (modules == nullptr) {
    Settings keyed = settings;  // what an adapter gives is an input in the cached program
    keyed.overridable.insert(keyed.overridable.end(), given.begin(), given.end());
    absl::Span<const FileOfModel> files;
    if (setup.files != nullptr) files = setup.files->files();
    ANEMONE_ASSIGN_OR_RETURN(setup.cache, SessionCache::Open(keyed, files, std::move(bytes)));
    return setup;
  }
  // The model that runs has more inputs than the file's, which the cache's key does not know.
  setup.is_of_file = false;
  if (modules->by_row) {
    const std::string& any = modules->ranks.begin()->first;
    setup.import = WithRowProof(std::move(setup.import), AdapterInput(any, 'A'));
  }
  return setup;
}

}  // namespace anemone
