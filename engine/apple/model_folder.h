// engine/apple/model_folder.h: the folder of a model, which the framework names and the compiler
// reads. Models with the same text share one folder (device.md, "Rules that bite"), so it is
// deleted when the last of them is gone. Processes do not share one: one would delete what the
// other has not loaded yet.
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
  // written the same. kAlreadyExists (another process uses the folder, or a living model has
  // reserved it: give the model another text), kPermissionDenied (a file cannot be written),
  // kAborted (a living model has written other files there).
  static absl::StatusOr<std::shared_ptr<const ModelFolder>> Take(const std::string& path,
                                                                 const ModelFiles& files);

  // kAborted if a file is not the one that was written: something else uses the folder.
  absl::Status Check(const ModelFiles& files) const;

  // Keeps the folder for its only model, so that no later model with the same text shares it.
  // kUnimplemented: another living model does.
  absl::Status Reserve() const;

  // Writes the weights of `files`, whose text is of the same form, in place of those that are
  // there. The folder must be reserved. kPermissionDenied: a file cannot be written.
  absl::Status Rewrite(const ModelFiles& files) const;

  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder();

 private:
  ModelFolder(std::string path, std::string key, int folder)
      : path_(std::move(path)), key_(std::move(key)), folder_(folder) {}

  const std::string path_, key_;
  const int folder_;                  // open, so that it stays locked
  mutable bool is_reserved_ = false;  // guarded by a mutex of model_folder.cc
};

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_MODEL_FOLDER_H_
