#include "provider/compiled/compile.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "anemone/tensor.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/read/model_files.h"
#include "provider/compiled/compile_steps.h"
#include "provider/compiled/manifest.h"
#include "provider/compiled/program_file.h"
#include "provider/new_file.h"
#include "provider/session_cache.h"
#include "provider/settings.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "model";

}  // namespace

absl::StatusOr<Compiled> CompileModel(const std::string& path, const Settings& given,
                                      const std::string& output) {
  return Guarded("compile the model", [&]() -> absl::StatusOr<Compiled> {
    const TimeLimit limit(given.time_limit);
    // Who runs it may keep a state, or not: the results are the same.
    Settings settings = given;
    if (settings.state.empty()) settings.state[kUsualPairs] = "";
    ANEMONE_RETURN_IF_ERROR(RunPlanOptionsOf(settings).status());
    ANEMONE_ASSIGN_OR_RETURN(const auto folder, NewFolder::Make(output));
    // First, so that a file which is replaced after this is an error of the import.
    ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, SetupToCompile(path, settings));
    const ModelLimits limits(settings.limits);
    const std::vector<FileOfModel> files = OpenFilesOfModel(path);
    const std::vector<Tensor> sources = SourcesOf(files);
    Compiled made;
    ANEMONE_ASSIGN_OR_RETURN(made.weights_version, WeightsVersionOf(sources));
    ANEMONE_ASSIGN_OR_RETURN(
        made.line, PlanIntoFolder(folder->path(), sources, made.weights_version, std::move(setup)));
    const fs::path beside = fs::path(path).parent_path();
    if (sources.size() != files.size()) {
      return absl::NotFoundError("a file of the model cannot be read; make all of them readable");
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < files.size(); ++i) {
      const fs::path file = files[i].path;
      const fs::path name = file.lexically_relative(beside.empty() ? "." : beside);
      names.push_back((fs::path(kModel) / (name.empty() ? file : name)).string());
      ANEMONE_RETURN_IF_ERROR(CopyWith(sources[i], {}, FileIn(folder->path(), names[i])));
    }
    ANEMONE_RETURN_IF_ERROR(WriteManifest(folder->path(), {names, settings, made.weights_version}));
    ANEMONE_RETURN_IF_ERROR(folder->PutIntoPlace());
    return made;
  });
}

}  // namespace anemone
