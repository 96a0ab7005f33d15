#include "base/real_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"

namespace anemone {
namespace {

// Without O_NONBLOCK, opening a pipe that has no writer would block.
constexpr int kRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

// A descriptor of the file at the absolute path `real`, or -1 with errno.
int OpenWithoutLinks(const std::string& real) {
#ifdef __APPLE__
  return ::open(real.c_str(), kRead | O_NOFOLLOW_ANY);
#else
  int at = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const std::vector<std::string> parts = absl::StrSplit(real, '/', absl::SkipEmpty());
  for (size_t i = 0; i < parts.size() && at >= 0; ++i) {
    const bool is_last = i + 1 == parts.size();
    const int flags = is_last ? kRead : O_PATH | O_DIRECTORY | O_CLOEXEC;
    const int next = ::openat(at, parts[i].c_str(), flags | O_NOFOLLOW);
    const int problem = errno;
    ::close(at);
    errno = problem;
    at = next;
  }
  return at;
#endif
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MapRealFile(const std::string& real,
                                                              const std::string& name) {
  const int file = OpenWithoutLinks(real);
  if (file < 0) {
    // ENOTDIR: O_DIRECTORY and O_NOFOLLOW refuse a link so.
    if (errno == ELOOP || errno == ENOTDIR || errno == ENOENT) {
      return absl::AbortedError(
          absl::StrCat("'", name, "': was replaced while it was opened; try again"));
    }
    return absl::ErrnoToStatus(
        errno, absl::StrCat("'", name, "': cannot be opened; make the file readable"));
  }
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' has ", info.st_nlink,
                     " names (hard links), and the others may be outside the model's folder; make "
                     "a copy of it"));
  }
  return MappedFile::Map(file, name);
}

absl::StatusOr<std::string> RealPathBelow(const std::string& folder, absl::string_view name) {
  namespace fs = std::filesystem;
  if (absl::StrContains(name, '\0')) return absl::NotFoundError("a name with a zero byte");
  std::error_code error;
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  if (error) return absl::NotFoundError(folder);
  const fs::path real = fs::canonical(root / std::string(name), error);
  if (error) return absl::NotFoundError(name);
  const auto [end, at] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  return end == root.end() ? real.string() : std::string();
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MapFileBelow(const std::string& folder,
                                                               absl::string_view name) {
  const std::string path = absl::StrCat(folder.empty() ? "." : folder, "/", Printable(name));
  const auto real = RealPathBelow(folder, name);
  if (!real.ok()) {
    return absl::NotFoundError(absl::StrCat("'", path, "': no such file; give the whole folder"));
  }
  if (real->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': is a link out of the folder; put a copy of the file there"));
  }
  return MapRealFile(*real, path);
}

}  // namespace anemone
