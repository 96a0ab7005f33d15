// provider/compiled/compiled_model.h: a compiled model: a folder that `anemone compile` writes and
// sessions load without importing and planning. It has
//   manifest.json     what it was compiled for, its files, and the version of its weights
//   program.anemone   the plan (provider/package/session_package.h), without the model's weights
//   model/            the model's own files
// The program refers to the weights in the model's files. It has the same version as they, so a
// program of other weights is never run.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto opened, CompiledModel::Open("net.ane"));
#ifndef ANEMONE_PROVIDER_COMPILED_COMPILED_MODEL_H_
#define ANEMONE_PROVIDER_COMPILED_COMPILED_MODEL_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "anemone/tensor.h"
#include "provider/program_store.h"

namespace anemone {

class CompiledModel : public ProgramStore {
 public:
  // Whether `path` is a folder with a manifest or a program, which may be damaged.
  static bool Is(const std::string& path);

  // Reads the folder and checks all of it, again if another process replaces the folder meanwhile.
  // kDataLoss: damaged. kFailedPrecondition: a file was changed since, or another version of
  // Anemone wrote it.
  static absl::StatusOr<std::shared_ptr<const CompiledModel>> Open(const std::string& folder);

  // `given` with what the model was compiled for. UsageError: `given` wants something else.
  absl::StatusOr<Settings> SettingsFor(const Settings& given) const;
  // The pairs whose rows the plan may write in place: Settings::state when it was compiled.
  const std::map<std::string, std::string>& state() const { return settings_.state; }
  const std::string& model_path() const { return files_[0]; }
  const PlannedModel& planned() const { return planned_; }
  // The files, and their contents.
  const std::vector<std::string>& names() const { return names_; }  // in the folder
  const std::vector<Tensor>& sources() const { return sources_; }
  const std::string& version() const { return version_; }  // a hash of the contents

  std::optional<PlannedModel> Find(const ImportOptions&) const override { return planned_; }
  void Store(const ImportOptions&, const Graph&, const Plan&, const std::vector<CpuModel>&,
             const PlanFacts&) const override {}

 private:
  static absl::StatusOr<std::shared_ptr<const CompiledModel>> Read(const std::string& folder);

  Settings settings_;
  std::vector<std::string> files_, names_;
  std::vector<Tensor> sources_;
  std::string version_;
  PlannedModel planned_;
};

// The model's own file, if `path` is a compiled model; else `path`.
std::string ModelFileAt(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_COMPILED_MODEL_H_
