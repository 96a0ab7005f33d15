#include "anemone/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

absl::Status SystemError(const std::string& path, absl::string_view what) {
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR)
    return absl::NotFoundError(absl::StrCat(path, ": no such file"));
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes would wait for ever.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return SystemError(path, "cannot be opened");
  const absl::Cleanup close = [file] { ::close(file); };
  return Map(file, path);
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Map(int file,
                                                                  const std::string& path) {
  struct stat info;
  if (::fstat(file, &info) != 0) return SystemError(path, "cannot be examined");
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, want a file"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a device or a pipe, want a file; save it to one first"));
  }
  if (info.st_size == 0) return absl::DataLossError(absl::StrCat(path, ": is empty"));
  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) return SystemError(path, "cannot be mapped");
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(data_), size_); }

absl::Status NotWritten(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(
      "'", path, "': cannot be written; choose a folder that can be, on a disk with space"));
}

}  // namespace anemone
