#include "engine/apple/model_folder.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"

namespace anemone::apple {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;  // of Owners()

// The folders of living models, by path.
std::map<std::string, std::weak_ptr<const ModelFolder>>& Owners() {
  static auto& owners = *new std::map<std::string, std::weak_ptr<const ModelFolder>>;
  return owners;
}

absl::Status Write(const fs::path& path, absl::string_view text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  return file ? absl::OkStatus() : NotWritten(path.string());
}

absl::Status Changed(const std::string& path, absl::string_view why) {
  return absl::AbortedError(absl::StrCat("model folder '", path, "': ", why,
                                         ", so the device would run stale weights; end the other "
                                         "process, or set TMPDIR to a folder of your own"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ModelFolder>> ModelFolder::Take(const std::string& path,
                                                                     const ModelFiles& files) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const ModelFolder>& owner = Owners()[path];
  if (auto living = owner.lock()) {
    if (living->key_ == files.key && !living->is_reserved_) return living;
    return Changed(path, "a model that is still used has the same text and other weights");
  }
  std::shared_ptr<const ModelFolder> made(new ModelFolder(path, files.key));
  ANEMONE_RETURN_IF_ERROR(Write(fs::path(path) / files.text_name, files.text));
  for (const ModelFiles::Weights& weights : files.weights) {
    ANEMONE_RETURN_IF_ERROR(Write(fs::path(path) / weights.path, weights.bytes()));
  }
  owner = made;
  return made;
}

bool ModelFolder::IsReserved(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto owner = Owners().find(path);
  if (owner == Owners().end()) return false;
  const auto living = owner->second.lock();
  return living != nullptr && living->is_reserved_;
}

absl::Status ModelFolder::Reserve() const {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto owner = Owners().find(path_);
  if (owner == Owners().end() || owner->second.use_count() > 1) {
    return absl::UnimplementedError("another model uses the same folder");
  }
  is_reserved_ = true;
  return absl::OkStatus();
}

absl::Status ModelFolder::Rewrite(const ModelFiles& files) const {
  for (const ModelFiles::Weights& weights : files.weights) {
    ANEMONE_RETURN_IF_ERROR(Write(fs::path(path_) / weights.path, weights.bytes()));
  }
  return absl::OkStatus();
}

absl::Status ModelFolder::Check(const ModelFiles& files) const {
  for (const ModelFiles::Weights& weights : files.weights) {
    if (weights.bytes().empty()) continue;
    const auto there = MappedFile::Open((fs::path(path_) / weights.path).string());
    if (!there.ok() || (*there)->text() != weights.bytes()) {
      return Changed(path_, absl::StrCat(weights.path, " is not the file that was written"));
    }
  }
  return absl::OkStatus();
}

ModelFolder::~ModelFolder() {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto owner = Owners().find(path_);
  if (owner != Owners().end() && !owner->second.expired()) return;  // another took it since
  if (owner != Owners().end()) Owners().erase(owner);
  std::error_code error;
  fs::remove_all(path_, error);
}

}  // namespace anemone::apple
