#include "provider/compiled/compiled_model.h"

#include <sys/stat.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "provider/compiled/folder_generation.h"
#include "provider/compiled/manifest.h"
#include "provider/compiled/program_file.h"
#include "provider/settings.h"

namespace anemone {

bool CompiledModel::Is(const std::string& path) {
  struct stat info;  // asked for each model that is loaded; fs::is_directory() takes the path apart
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  const auto has = [&](const char* name) {
    return ::lstat(FileIn(path, name).c_str(), &info) == 0;
  };
  return has(kManifestFile) || has(kProgramFile);
}

absl::StatusOr<std::shared_ptr<const CompiledModel>> CompiledModel::Open(
    const std::string& folder) {
  return Guarded("read a compiled model", [&] {
    return OfOneGeneration(folder, [&](const FolderGeneration&) { return Read(folder); });
  });
}

absl::StatusOr<std::shared_ptr<const CompiledModel>> CompiledModel::Read(
    const std::string& folder) {
  auto model = std::make_shared<CompiledModel>();
  ANEMONE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(folder));
  model->settings_ = manifest.settings;
  model->names_ = manifest.files;
  for (const std::string& name : model->names_) {
    ANEMONE_ASSIGN_OR_RETURN(const auto file, MapFileIn(folder, name));
    model->files_.push_back(FileIn(folder, name));
    const auto size = static_cast<int64_t>(file->bytes().size());
    model->sources_.push_back(Tensor::View(DataType::kUInt8, {size}, file->bytes(), file));
  }
  ANEMONE_ASSIGN_OR_RETURN(model->version_, WeightsVersionOf(model->sources_));
  if (model->version_ != manifest.weights_version) {
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": its files have changed since; compile the model again"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Package package,
                           ReadProgram(folder, model->sources_, model->version_));
  ANEMONE_ASSIGN_OR_RETURN(model->planned_, FromPackage(package));
  return model;
}

absl::StatusOr<Settings> CompiledModel::SettingsFor(const Settings& given) const {
  const Settings fallback;
  for (const Setting& setting : AllSettings()) {
    if (setting.key == nullptr) continue;
    const bool is_auto = setting.name == absl::string_view("linear_layers") &&
                         given.linear_layers == fallback.linear_layers;
    const std::string want = setting.key(given), have = setting.key(settings_);
    if (is_auto || want == setting.key(fallback) || want == have) continue;
    return UsageError(absl::StrCat("the model was compiled with ", have.empty() ? "no " : "",
                                   setting.name, have.empty() ? "" : " ", have, ", not ", want,
                                   "; compile it again"));
  }
  if (!given.buckets.empty()) {
    return UsageError("a compiled model has one size; load the model itself for buckets");
  }
  Settings merged = given;
  for (const auto& [name, size] : given.dims) {
    const auto found = settings_.dims.find(name);
    if (found != settings_.dims.end() && found->second == size) continue;
    return UsageError(absl::StrCat("dimension '", Printable(name),
                                   "': the model was compiled for other sizes; compile it again"));
  }
  for (const auto& [name, dims] : given.shapes) {
    const auto found = settings_.shapes.find(name);
    if (found != settings_.shapes.end() && found->second == dims) continue;
    return UsageError(absl::StrCat("input '", Printable(name),
                                   "': the model was compiled for other sizes; compile it again"));
  }
  for (const Setting& setting : AllSettings()) {
    if (setting.key == nullptr) continue;
    ANEMONE_RETURN_IF_ERROR(setting.store(merged, setting.key(settings_)));
  }
  merged.dims = settings_.dims;
  merged.shapes = settings_.shapes;
  merged.cache = false;
  return merged;
}

std::string ModelFileAt(const std::string& path) {
  if (!CompiledModel::Is(path)) return path;
  const auto manifest = ReadManifest(path);
  if (!manifest.ok()) return path;
  const std::string& name = manifest->files[0];
  return MapFileIn(path, name).ok() ? FileIn(path, name) : path;
}

}  // namespace anemone
