#include "provider/new_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr char kExistsMeanwhile[] =
    "already exists, because another process wrote it meanwhile; choose another, or remove it";
constexpr char kRemedy[] = "; choose a folder that is writable, on a disk with free space";

absl::Status NotWrittenNow(const std::string& path) {
  const absl::Status why =
      absl::ErrnoToStatus(errno, absl::StrCat("'", path, "': cannot be written"));
  return absl::Status(why.code(), absl::StrCat(why.message(), kRemedy));
}

// Renaming would replace /dev/null or a pipe by a file, for every program on the machine.
absl::Status CheckIsRegular(const std::string& path) {
  struct stat there;
  if (::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, S_ISDIR(there.st_mode) ? "': is a folder, not a file" : "': is not a regular file",
      "; choose another name"));
}

// Waits until a full pipe can take more, but not for long: a time limit may be over.
void WaitForReader(int file) {
  constexpr int kMilliseconds = 100;
  pollfd pipe = {.fd = file, .events = POLLOUT, .revents = 0};
  ::poll(&pipe, 1, kMilliseconds);
}

absl::Status WriteAll(int file, absl::string_view bytes, const std::string& path) {
  constexpr size_t kAtOnce = size_t{64} << 20;  // a time limit may be over between two parts
  while (!bytes.empty()) {
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kWrite, [&] { return path; }));
    const ssize_t count = ::write(file, bytes.data(), std::min(bytes.size(), kAtOnce));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      WaitForReader(file);
      continue;
    }
    if (count < 0) return NotWrittenNow(path);
    bytes.remove_prefix(count);
  }
  return absl::OkStatus();
}

// True if the file must be written in place: it is a device or a pipe, or a name of a file that is
// open, such as /dev/stdout.
bool IsWrittenInPlace(const std::string& path) {
  struct stat there;
  if (::stat(path.c_str(), &there) != 0) return false;
  if (!S_ISREG(there.st_mode)) return !S_ISDIR(there.st_mode);
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).lexically_normal().string();
  return absl::StartsWith(absolute, "/dev/") || absl::StartsWith(absolute, "/proc/");
}

}  // namespace

absl::StatusOr<std::unique_ptr<NewFile>> NewFile::Make(const std::string& path) {
  ANEMONE_RETURN_IF_ERROR(CheckIsRegular(path));
  auto temporary = Temporary::Make(path, Temporary::Kind::kFile);
  if (!temporary.ok()) {
    return absl::Status(temporary.status().code(),
                        absl::StrCat("'", path, "': ", temporary.status().message(), kRemedy));
  }
  return std::unique_ptr<NewFile>(new NewFile(path, *std::move(temporary)));
}

void NewFile::HideFromOthers() { ::fchmod(temporary_->file(), S_IRUSR | S_IWUSR); }

absl::Status NewFile::Write(absl::string_view bytes) {
  return WriteAll(temporary_->file(), bytes, path_);
}

absl::Status NewFile::PutIntoPlace(bool flush) {
  ANEMONE_RETURN_IF_ERROR(CheckIsRegular(path_));  // it may have been created meanwhile
  return temporary_->RenameTo(path_, flush) ? absl::OkStatus() : NotWrittenNow(path_);
}

absl::StatusOr<std::unique_ptr<NewFolder>> NewFolder::Make(const std::string& wanted) {
  std::error_code error;
  fs::path path = fs::path(wanted).lexically_normal();
  if (fs::exists(path, error)) {
    if (!fs::is_directory(path, error)) {
      return absl::AlreadyExistsError(
          absl::StrCat("'", wanted, "': is not a folder; choose another name"));
    }
    if (!fs::is_empty(path, error)) {
      return absl::AlreadyExistsError(absl::StrCat(
          "folder '", wanted, "': already exists and is not empty; choose another, or remove it"));
    }
    path = fs::canonical(path, error);  // a folder cannot replace a link to one
    if (error) return NotWritten(wanted);
  }
  std::string whole = path.string();
  while (whole.size() > 1 && whole.back() == '/') whole.pop_back();
  const fs::path parent = fs::path(whole).parent_path();
  if (!parent.empty()) fs::create_directories(parent, error);
  if (error) return NotWritten(wanted);
  auto temporary = Temporary::Make(whole, Temporary::Kind::kFolder);
  if (!temporary.ok()) return NotWritten(wanted);
  return std::unique_ptr<NewFolder>(new NewFolder(std::move(whole), *std::move(temporary)));
}

absl::StatusOr<std::unique_ptr<NewFolder>> NewFolder::MakeFor(const std::string& wanted,
                                                              const std::string& replaced) {
  std::error_code error;
  if (!fs::equivalent(wanted, replaced, error) || error) return Make(wanted);
  const fs::path whole = fs::canonical(wanted, error);
  if (error) return NotWritten(wanted);
  auto temporary = Temporary::Make(whole.string(), Temporary::Kind::kFolder);
  if (!temporary.ok()) return NotWritten(wanted);
  std::unique_ptr<NewFolder> folder(new NewFolder(whole.string(), *std::move(temporary)));
  folder->replaces_ = true;
  return folder;
}

absl::Status NewFolder::PutIntoPlace() {
  if (replaces_) {
    return temporary_->ExchangeWith(wanted_) ? absl::OkStatus() : NotWrittenNow(wanted_);
  }
  if (temporary_->RenameTo(wanted_)) return absl::OkStatus();
  if (errno == ENOTEMPTY || errno == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat("folder '", wanted_, "': ", kExistsMeanwhile));
  }
  return NotWritten(wanted_);
}

absl::Status WriteUserFile(const std::string& given, absl::Span<const absl::string_view> parts) {
  if (IsWrittenInPlace(given)) {
    // Without O_NONBLOCK, opening a pipe that has no reader would block.
    const int file = ::open(given.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && errno == ENXIO) {
      return absl::FailedPreconditionError(absl::StrCat(
          "'", given, "': is a pipe that nobody reads; start its reader first, or choose a file"));
    }
    if (file < 0) return NotWrittenNow(given);
    const absl::Cleanup close = [file] { ::close(file); };
    for (absl::string_view part : parts) ANEMONE_RETURN_IF_ERROR(WriteAll(file, part, given));
    return absl::OkStatus();
  }
  std::error_code error;
  const fs::path target = fs::weakly_canonical(given, error);
  ANEMONE_ASSIGN_OR_RETURN(auto file, NewFile::Make(error ? given : target.string()));
  for (absl::string_view part : parts) ANEMONE_RETURN_IF_ERROR(file->Write(part));
  return file->PutIntoPlace();
}

absl::Status CheckIsNotInput(const std::string& output, absl::Span<const std::string> inputs) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (!fs::equivalent(output, input, error) || error) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", output, "': is ",
        output == input ? "a file that is read"
                        : absl::StrCat("the same file as '", input, "', which is read"),
        "; choose another name"));
  }
  return absl::OkStatus();
}

}  // namespace anemone
