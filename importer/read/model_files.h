// importer/read/model_files.h: the files of a model on the disk.
#ifndef ANEMONE_IMPORTER_READ_MODEL_FILES_H_
#define ANEMONE_IMPORTER_READ_MODEL_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace anemone {

// The model file, then the files of its external data, each once: those that exist and that a model
// may name (importer/read/external_data.h). Only the model file if it cannot be read: an import
// says why.
std::vector<std::string> FilesOfModel(const std::string& path);

// For another reader, which may have other rules: ok if the model at `path`, or `bytes` if it is in
// memory, names only files that it may name. Functions that are never called count too. Errors:
// those of MakeSkeleton() and ExternalData::Resolve().
absl::Status CheckFilesOfModel(const std::string& path,
                               const std::shared_ptr<const std::string>& bytes);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_MODEL_FILES_H_
