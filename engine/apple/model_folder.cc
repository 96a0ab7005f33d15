#include "engine/apple/model_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

// More than processes that end at one moment; a folder that cannot be made is missed each time.
constexpr int kMostMissed = 100;

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

absl::Status Used(const std::string& path) {
  return absl::AlreadyExistsError(absl::StrCat("model folder '", path, "': another model uses it"));
}

// The folder, made and locked against other processes.
absl::StatusOr<int> LockedFolder(const std::string& path) {
  int missed = 0;  // times that another process removed the folder before it was open
  while (true) {
    std::error_code error;
    fs::create_directories(path, error);
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && ++missed < kMostMissed) continue;
    if (folder < 0) return NotWritten(path);
    if (::flock(folder, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return folder;  // a file system without locks
      ::close(folder);
      return Used(path);
    }
    struct stat locked, named;
    if (::fstat(folder, &locked) == 0 && ::stat(path.c_str(), &named) == 0 &&
        locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) {
      return folder;
    }
    ::close(folder);  // another process has removed it meanwhile
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ModelFolder>> ModelFolder::Take(const std::string& path,
                                                                     const ModelFiles& files) {
  std::shared_ptr<const ModelFolder> made;  // its destructor takes the mutex
  const std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const ModelFolder>& owner = Owners()[path];
  if (auto living = owner.lock()) {
    if (living->is_reserved_) return Used(path);
    if (living->key_ == files.key) return living;
    return Changed(path, "a model that is still used has the same text and other weights");
  }
  ANEMONE_ASSIGN_OR_RETURN(const int folder, LockedFolder(path));
  made.reset(new ModelFolder(path, files.key, folder));
  ANEMONE_RETURN_IF_ERROR(Write(fs::path(path) / files.text_name, files.text));
  for (const ModelFiles::Weights& weights : files.weights) {
    ANEMONE_RETURN_IF_ERROR(Write(fs::path(path) / weights.path, weights.bytes()));
  }
  owner = made;
  return made;
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
  const bool is_taken = owner != Owners().end() && !owner->second.expired();  // by another, since
  if (!is_taken) {
    if (owner != Owners().end()) Owners().erase(owner);
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ::close(folder_);
}

}  // namespace anemone::apple
