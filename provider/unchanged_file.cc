#include "provider/unchanged_file.h"

#include "absl/strings/str_cat.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/read/model_files.h"

namespace anemone {

UnchangedFile::UnchangedFile(const std::string& path, const Settings& settings) {
  const ModelLimits limits(settings.limits);
  for (std::string& file : FilesOfModel(path)) {
    const auto identity = IdentityAt(file);
    files_.emplace_back(std::move(file), identity);
  }
}

absl::Status UnchangedFile::Check() const {
  for (const auto& [path, first] : files_) {
    if (IdentityAt(path) == first) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the file has changed since it was loaded; load the model again"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> UnchangedFile::Import(const ImportOptions& importing) const {
  ANEMONE_RETURN_IF_ERROR(Check());
  absl::StatusOr<Model> model = ImportFile(files_.front().first, importing);
  ANEMONE_RETURN_IF_ERROR(Check());
  return model;
}

}  // namespace anemone
