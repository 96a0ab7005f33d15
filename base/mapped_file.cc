#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file_identity.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

const char* RemedyOf(int error) {
  switch (error) {
    case ENOMEM:
    case ENODEV:
      return "; give the process more memory, or copy the file to a disk whose files can be mapped";
    case EMFILE:
    case ENFILE:
      return "; close files, or raise the number that may be open (ulimit -n)";
    case EACCES:
    case EPERM:
      return "; make the file and its folders readable";
    default:
      return "; check the path and the disk";
  }
}

absl::Status SystemError(const std::string& path, absl::string_view what) {
  const int error = errno;
  if (path.empty()) return absl::NotFoundError("the path of a file is empty; give a path");
  if (error == ENOENT || error == ENOTDIR)
    return absl::NotFoundError(absl::StrCat(path, ": no such file; check the path"));
  absl::Status status = absl::ErrnoToStatus(error, absl::StrCat(path, ": ", what));
  return absl::Status(status.code(), absl::StrCat(status.message(), RemedyOf(error)));
}

// A file up to this size is read: its few pages cost less to copy than to map. Measured on Linux.
constexpr size_t kMostRead = size_t{32} << 10;

// All mappings of the process. A file that is opened twice (by the programs of a model's buckets)
// is mapped once and shared.
struct Mappings {
  std::mutex mutex;
  std::map<const std::byte*, size_t> sizes;  // by first byte
  std::map<FileIdentity, std::weak_ptr<const MappedFile>> files;
};
Mappings& AllMappings() {
  static Mappings& mappings = *new Mappings;
  return mappings;
}

}  // namespace

MappedFile::MappedFile(const FileIdentity& identity, const std::byte* data, size_t size)
    : identity_(identity), data_(data), size_(size) {
  std::lock_guard<std::mutex> lock(AllMappings().mutex);
  AllMappings().sizes[data] = size;
}

MappedFile::MappedFile(const FileIdentity& identity, std::vector<std::byte> copy)
    : identity_(identity), copy_(std::move(copy)), data_(copy_.data()), size_(copy_.size()) {}

namespace {

struct Place {
  const std::byte* file = nullptr;  // its first byte; null if the bytes are not in a file
  size_t size = 0;                  // of the file
  size_t offset = 0;
};

// The caller holds the lock of AllMappings().
Place PlaceOf(absl::Span<const std::byte> bytes) {
  const auto& sizes = AllMappings().sizes;
  auto file = sizes.upper_bound(bytes.data());
  if (file == sizes.begin()) return {};
  --file;
  const auto offset = static_cast<size_t>(bytes.data() - file->first);
  if (offset + bytes.size() > file->second) return {};
  return {file->first, file->second, offset};
}

}  // namespace

void MappedFile::GiveBack(absl::Span<const std::byte> bytes) {
  std::lock_guard<std::mutex> lock(AllMappings().mutex);
  const Place place = PlaceOf(bytes);
  if (place.size <= kMostKept) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = (place.offset + page - 1) / page * page;
  const size_t end = (place.offset + bytes.size()) / page * page;
  if (first < end) {
    ::madvise(const_cast<std::byte*>(place.file) + first, end - first, MADV_DONTNEED);
  }
}

bool MappedFile::Contains(absl::Span<const std::byte> bytes) {
  std::lock_guard<std::mutex> lock(AllMappings().mutex);
  return PlaceOf(bytes).file != nullptr;
}

namespace {

std::shared_ptr<const MappedFile> FindMapped(const FileIdentity& identity) {
  const std::lock_guard<std::mutex> lock(AllMappings().mutex);
  auto& files = AllMappings().files;
  const auto found = files.find(identity);
  return found == files.end() ? nullptr : found->second.lock();
}

// Of threads that open a file at the same time, all get the mapping of the first. A file that was
// read does not keep its inode, which another one of the same size may have a moment later, within
// one tick of the system's clock: so its bytes are compared, too.
std::shared_ptr<const MappedFile> RememberMapped(const std::shared_ptr<const MappedFile>& file) {
  const std::lock_guard<std::mutex> lock(AllMappings().mutex);
  auto& files = AllMappings().files;
  if (const auto found = files.find(file->identity()); found != files.end()) {
    auto first = found->second.lock();
    if (first != nullptr && (file->bytes().size() > kMostRead || first->text() == file->text())) {
      return first;
    }
  }
  std::erase_if(files, [](const auto& entry) { return entry.second.expired(); });
  files[file->identity()] = file;
  return file;
}

// All bytes of a file of this size.
absl::StatusOr<std::vector<std::byte>> Read(int file, size_t size, const std::string& path) {
  std::vector<std::byte> bytes(size);
  for (size_t at = 0; at < size;) {
    const ssize_t got = ::pread(file, bytes.data() + at, size - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, "cannot be read");
    if (got == 0)
      return absl::DataLossError(
          absl::StrCat(path, ": became shorter while it was read; try again when it is written"));
    at += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe that has no writer would block.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return SystemError(path, "cannot be opened");
  const absl::Cleanup close = [file] { ::close(file); };
  return Map(file, path);
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Map(int file,
                                                                  const std::string& path) {
  struct stat info;
  if (::fstat(file, &info) != 0) return SystemError(path, "its attributes cannot be read");
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a folder, not a file; give a file"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a device or a pipe; save its contents to a file first"));
  }
  if (info.st_size == 0)
    return absl::DataLossError(absl::StrCat(path, ": is empty; write it again"));
  const FileIdentity identity = IdentityOf(info);
  const auto size = static_cast<size_t>(info.st_size);
  std::shared_ptr<const MappedFile> mapped;
  if (size <= kMostRead) {
    ANEMONE_ASSIGN_OR_RETURN(std::vector<std::byte> copy, Read(file, size, path));
    mapped.reset(new MappedFile(identity, std::move(copy)));
  } else if (auto known = FindMapped(identity)) {
    return known;
  } else {
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) return SystemError(path, "cannot be mapped");
    mapped.reset(new MappedFile(identity, static_cast<const std::byte*>(data), size));
  }
  return RememberMapped(mapped);
}

MappedFile::~MappedFile() {
  if (!copy_.empty()) return;
  {
    std::lock_guard<std::mutex> lock(AllMappings().mutex);
    AllMappings().sizes.erase(data_);
  }
  ::munmap(const_cast<std::byte*>(data_), size_);
}

absl::Status NotWritten(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat(
      "'", path, "': cannot be written; choose a folder that is writable and has free space"));
}

}  // namespace anemone
