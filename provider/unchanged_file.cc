#include "provider/unchanged_file.h"

#include "absl/strings/str_cat.h"
#include "base/model_limits.h"
#include "base/status_macros.h"

namespace anemone {

UnchangedFile::UnchangedFile(const std::string& path, const Settings& settings) {
  const ModelLimits limits(settings.limits);
  files_ = OpenFilesOfModel(path);
}

absl::Status UnchangedFile::Check() const {
  for (const FileOfModel& file : files_) {
    if (file.contents == nullptr || IdentityAt(file.path) == file.contents->identity()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        file.path, ": the file has changed since it was loaded; load the model again"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> UnchangedFile::Import(const ImportOptions& importing) const {
  ANEMONE_RETURN_IF_ERROR(Check());  // pages of a file that became shorter cannot be read
  const FileOfModel& file = files_.front();
  if (file.contents == nullptr) return ImportFile(file.path, importing);  // says why
  absl::StatusOr<Model> model = ImportMapped(file.contents, file.path, importing);
  ANEMONE_RETURN_IF_ERROR(Check());
  return model;
}

}  // namespace anemone
