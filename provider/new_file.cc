#include "provider/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

absl::Status NotWrittenNow(const std::string& path) {
  const absl::Status why =
      absl::ErrnoToStatus(errno, absl::StrCat("'", path, "': cannot be written"));
  return absl::Status(why.code(), absl::StrCat(why.message(),
                                               "; choose a folder that is writable, on a disk "
                                               "with free space"));
}

// Locks a new file. Returns false if another process has removed it as a leftover.
bool LockNew(int file) {
  while (::flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) return true;  // a file system without locks
  }
  struct stat info;
  return ::fstat(file, &info) != 0 || info.st_nlink > 0;
}

// A file's name is on the disk only after its folder has been flushed.
void FlushFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NewFile>> NewFile::Make(const std::string& path) {
  // Renaming would replace /dev/null or a pipe by a file, for every program on the machine.
  struct stat there;
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': exists and is not a regular file; choose another name"));
  }
  static std::atomic<int> last = 0;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    std::string temporary = absl::StrCat(path, ".", ::getpid(), "-", ++last, ".tmp");
    const int file =
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST)
      continue;  // of a process on another machine that shares the folder
    if (file < 0) return NotWrittenNow(path);
    std::unique_ptr<NewFile> made(new NewFile(path, std::move(temporary), file));
    if (LockNew(file)) return made;
  }
  return absl::AbortedError(absl::StrCat(
      "'", path, "': no free name for a temporary file next to it; remove the .tmp files"));
}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (file_ >= 0) ::close(file_);
}

absl::Status NewFile::Write(absl::string_view bytes) {
  constexpr size_t kAtOnce = size_t{1} << 30;  // write() takes at most 2 GiB in one call
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), std::min(bytes.size(), kAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return NotWrittenNow(path_);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::Status NewFile::PutIntoPlace() {
  if (::fsync(file_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return NotWrittenNow(path_);
  }
  temporary_.clear();
  FlushFolderOf(path_);
  return absl::OkStatus();
}

void RemoveIfLeft(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace anemone
