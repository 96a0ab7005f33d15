#include "provider/compiled/folder_generation.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace anemone {
namespace {

// Whether no other process has the lock of `file`, or the file system has no locks.
bool LockSoon(int file) {
  constexpr int kTries = 1000;
  constexpr absl::Duration kPause = absl::Milliseconds(10);
  for (int i = 0; i < kTries; ++i) {
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    absl::SleepFor(kPause);
  }
  return false;
}

}  // namespace

FolderGeneration::FolderGeneration(const std::string& path)
    : path_(path),
      file_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      first_(IdentityAt(path_)) {}

FolderGeneration::~FolderGeneration() {
  if (file_ >= 0) ::close(file_);
}

bool FolderGeneration::IsReplaced() const { return IdentityAt(path_) != first_; }

absl::Status FolderGeneration::Replace(absl::FunctionRef<absl::Status()> replace) const {
  const bool locked = file_ < 0 || LockSoon(file_);
  const absl::Cleanup unlock = [this] { ::flock(file_, LOCK_UN); };
  if (locked && !IsReplaced()) return replace();
  return absl::AbortedError(
      absl::StrCat(path_, ": other processes replace the folder; try again when they are done"));
}

}  // namespace anemone
