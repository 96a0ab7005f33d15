// engine/apple/model_folder.h: the folder of a model, which the framework names and the compiler
// reads. Models with the same text share one folder (device.md, "Rules that bite"), so it is
// deleted when the last of them is gone.
#ifndef ANEMONE_ENGINE_APPLE_MODEL_FOLDER_H_
#define ANEMONE_ENGINE_APPLE_MODEL_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/apple/model_files.h"

namespace anemone::apple {

class ModelFolder {
 public:
  // Writes the files of a model to the folder `path`, which is made, unless a living model has
  // written the same. kPermissionDenied (a file cannot be written), kAborted (a living model has
  // written other files there).
  static absl::StatusOr<std::shared_ptr<const ModelFolder>> Take(const std::string& path,
                                                                 const ModelFiles& files);

  // kAborted if a file is not the one that was written: something else uses the folder.
  absl::Status Check(const ModelFiles& files) const;

  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder();

 private:
  ModelFolder(std::string path, std::string key) : path_(std::move(path)), key_(std::move(key)) {}

  const std::string path_, key_;
};

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_MODEL_FOLDER_H_
