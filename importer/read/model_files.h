// importer/read/model_files.h: the files of a model on the disk.
#ifndef ANEMONE_IMPORTER_READ_MODEL_FILES_H_
#define ANEMONE_IMPORTER_READ_MODEL_FILES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "importer/write/to_onnx.h"

namespace anemone {

struct FileOfModel {
  std::string path;
  std::shared_ptr<const MappedFile> contents;  // null: it cannot be read
};

// The model file, then the files of its external data, each once: those that exist and that a model
// may name (importer/read/external_data.h). Only the model file if it cannot be read: an import
// says why. The contents are those that were checked: the path may lead elsewhere by now.
std::vector<FileOfModel> OpenFilesOfModel(const std::string& path);
// Their paths.
std::vector<std::string> FilesOfModel(const std::string& path);

// A model for another reader, which may have other rules for files, and opens them by their names.
struct ModelForReader {
  absl::string_view text;  // the model's bytes, if it has no external data
  std::shared_ptr<const void> owner;
  // Else the model with the data inline, except large initializers: these are listed, and `proto`
  // has no place for them.
  std::optional<OnnxModel> model;
};

// The model at `path`, or `bytes` if it is in memory. External data that is never used counts too.
// Errors: those of MakeSkeleton() and TensorReader; kResourceExhausted: it has more than 2 GiB;
// kInvalidArgument: the name of an input or output has a zero byte.
absl::StatusOr<ModelForReader> ReadForReader(const std::string& path,
                                             const std::shared_ptr<const std::string>& bytes);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_MODEL_FILES_H_
