// provider/unchanged_file.h: a model's files on the disk, which a session reads again later, for
// another size or new weights. If one was replaced or written meanwhile, its weights do not fit
// those that run.
#ifndef ANEMONE_PROVIDER_UNCHANGED_FILE_H_
#define ANEMONE_PROVIDER_UNCHANGED_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "importer/importer.h"
#include "importer/read/model_files.h"

namespace anemone {

class UnchangedFile {
 public:
  // Opens the model at `path` and the files of its external data (importer/read/model_files.h), if
  // the model is within the limits of settings that have passed CheckRunSettings().
  UnchangedFile(const std::string& path, const Settings& settings);

  const std::vector<FileOfModel>& files() const { return files_; }

  // kFailedPrecondition: a file is not the one that it was, by base/file_identity.h.
  absl::Status Check() const;

  // As ImportFile(). The error of Check(), if a file has changed until the end of the import.
  absl::StatusOr<Model> Import(const ImportOptions& importing) const;

 private:
  std::vector<FileOfModel> files_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_UNCHANGED_FILE_H_
