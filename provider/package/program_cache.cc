#include "provider/package/program_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "base/annotated.h"
#include "base/file_identity.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/table_hash.h"
#include "provider/package/content_hash.h"
#include "provider/temporaries.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSuffix = ".anemone", kTemporary = ".tmp";
// The section with the entry's key. It detects files that were copied or renamed.
constexpr char kKeySection[] = "cache.key";

// The part of a file's name after its key; empty if the name does not begin with a key. The folder
// may have other files, and only names that are a key and kSuffix are touched. Keys of earlier
// versions had 64 digits; their entries still count, so that they are removed when they are old.
absl::string_view AfterKey(absl::string_view name) {
  constexpr size_t kDigits = 32;
  const size_t digits =
      std::find_if_not(name.begin(), name.end(), absl::ascii_isxdigit) - name.begin();
  return digits < kDigits ? "" : name.substr(digits);
}

// Whether another user could have written the file. The administrator's files are trusted, so that
// an image of a container may have a filled cache.
bool IsOfOthers(const struct stat& info) {
  return (info.st_uid != ::geteuid() && info.st_uid != 0) || (info.st_mode & S_IWOTH) != 0;
}

// Opens a file for reading and updates its time of use. Does not follow links. Returns null if
// there is no such file.
absl::StatusOr<std::shared_ptr<const MappedFile>> Use(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return nullptr;
  if (file < 0 && errno == ELOOP) return absl::InvalidArgumentError("the entry is a link");
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("'", path, "': cannot be opened"));
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && IsOfOthers(info)) {
    return absl::InvalidArgumentError("the entry belongs to another user, or others can write it");
  }
  ::futimens(file, nullptr);  // fails without harm if the folder is read-only
  return MappedFile::Map(file, path);
}

// The file that this code was loaded from: its size and time of change. A new build of the same
// version may compile other programs.
std::string BuildIdentity() {
  static const std::string identity = [] {
    Dl_info place;
    struct stat info;
    const bool found = ::dladdr(reinterpret_cast<const void*>(&DefaultCacheFolder), &place) != 0 &&
                       place.dli_fname != nullptr && ::stat(place.dli_fname, &info) == 0;
    // A program that was found by PATH has no path here.
    if (!found && ::stat("/proc/self/exe", &info) != 0) return std::string();
    const timespec changed = ChangeTimeOf(info);
    return absl::StrCat(info.st_size, " ", changed.tv_sec, " ", changed.tv_nsec);
  }();
  return identity;
}

Package WithKey(Package package, const std::string& key) {
  package.extensions.push_back(
      {kKeySection, Tensor::Of<char>(DataType::kUInt8, {static_cast<int64_t>(key.size())}, key)});
  return package;
}

absl::StatusOr<Package> WithoutKey(Package package, absl::string_view key) {
  const std::optional<Tensor> held = TakeExtension(package, kKeySection);
  if (!held) return absl::DataLossError("the entry has no key");
  if (key != BytesText(*held)) return absl::DataLossError("the entry belongs to another key");
  return package;
}

struct Entry {
  std::string path;
  int64_t bytes = 0;
  timespec used = {};
  bool operator<(const Entry& other) const {
    return std::pair(used.tv_sec, used.tv_nsec) < std::pair(other.used.tv_sec, other.used.tv_nsec);
  }
};

}  // namespace

CacheKey::CacheKey() {
  Add("version", kVersion);
  Add("build", BuildIdentity());
  Add("tables", TableHash());
}

void CacheKey::Add(absl::string_view name, absl::string_view content) {
  for (absl::string_view part : {name, content}) parts_ += HashOf(part);
}

absl::Status CacheKey::AddInTime(absl::string_view name, absl::string_view content) {
  ANEMONE_ASSIGN_OR_RETURN(const std::string hash, HashInTime({content}));
  parts_ += HashOf(name) + hash;
  return absl::OkStatus();
}

std::string CacheKey::Hex() const { return absl::BytesToHexString(HashOf(parts_)); }

std::string DefaultCacheFolder() {
  const auto value = [](const char* name) -> std::string {
    const char* text = std::getenv(name);
    return text == nullptr || text[0] != '/' ? ""
                                             : text;  // relative paths are ignored, as XDG requires
  };
  if (const char* folder = std::getenv("ANEMONE_PROGRAM_CACHE")) return folder;
  constexpr absl::string_view kBelow = "/anemone/programs";
  if (std::string folder = value("XDG_CACHE_HOME"); !folder.empty()) {
    return absl::StrCat(folder, kBelow);
  }
#ifdef __APPLE__
  constexpr absl::string_view kCaches = "/Library/Caches";
#else
  constexpr absl::string_view kCaches = "/.cache";
#endif
  const std::string home = value("HOME");
  return home.empty() ? "" : absl::StrCat(home, kCaches, kBelow);
}

absl::StatusOr<std::unique_ptr<ProgramCache>> ProgramCache::Open(CacheOptions options) {
  if (options.folder.empty()) {
    return absl::InvalidArgumentError(
        "program cache: no folder is known; set HOME, or give a folder");
  }
  std::error_code error;
  if (!fs::is_directory(options.folder, error)) {
    fs::create_directories(fs::path(options.folder).parent_path(), error);
    const int failed = ::mkdir(options.folder.c_str(), 0700) == 0 ? 0 : errno;
    if (failed != 0 &&
        !fs::is_directory(options.folder, error)) {  // another process may have created it
      return absl::ErrnoToStatus(failed, absl::StrCat("program cache: folder '", options.folder,
                                                      "' cannot be created; choose another"));
    }
  }
  return std::unique_ptr<ProgramCache>(new ProgramCache(std::move(options)));
}

std::string ProgramCache::PathOf(const CacheKey& key) const {
  return absl::StrCat(options_.folder, "/", key.Hex(), kSuffix);
}

absl::StatusOr<std::optional<Package>> ProgramCache::Find(const CacheKey& key,
                                                          std::vector<Tensor> sources) {
  const std::string path = PathOf(key);
  absl::Status status;
  if (absl::StatusOr<std::shared_ptr<const MappedFile>> file = Use(path); file.ok()) {
    if (*file == nullptr) return std::nullopt;
    absl::StatusOr<Package> package = ReadPackage((*file)->text(), *file, std::move(sources));
    if (package.ok()) package = WithoutKey(*std::move(package), key.Hex());
    if (package.ok()) return *std::move(package);
    status = package.status();
  } else {
    status = file.status();
  }
  if (!absl::IsDataLoss(status) && !absl::IsInvalidArgument(status) &&
      !absl::IsFailedPrecondition(status)) {
    return Annotated(status, "program cache");
  }
  Drop(key, status);
  return std::nullopt;
}

void ProgramCache::Drop(const CacheKey& key, const absl::Status& why) {
  const std::string path = PathOf(key);
  ::unlink(path.c_str());
  if (options_.note) {
    options_.note(absl::StrCat("program cache: removed '", path, "': ", why.message()));
  }
}

absl::Status ProgramCache::Store(const CacheKey& key, const Package& package) {
  const std::string path = PathOf(key);
  // Flushing takes longer than planning most models. An entry that a crash of the machine tears is
  // refused by its checksums, like any damaged one.
  const absl::Status status =
      SavePackage(WithKey(package, key.Hex()), path, /*for_cache=*/true).status();
  Tidy();
  struct stat info;
  if (status.ok() && ::lstat(path.c_str(), &info) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("program cache: the package is larger than the limit of ", options_.max_bytes,
                     " bytes; raise the limit"));
  }
  return Annotated(status, "program cache");
}

void ProgramCache::Tidy() const {
  std::vector<Entry> entries;
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(options_.folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string path = at->path().string(), name = at->path().filename().string();
    struct stat info;
    const absl::string_view rest = AfterKey(name);
    if (!absl::StartsWith(rest, kSuffix) || ::lstat(path.c_str(), &info) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    if (absl::EndsWith(rest, kTemporary)) {
      RemoveIfLeft(path);
    } else if (rest == kSuffix) {
      entries.push_back({path, info.st_size, ChangeTimeOf(info)});
      bytes += info.st_size;
    }
  }
  std::sort(entries.begin(), entries.end());
  for (const Entry& entry : entries) {
    if (bytes <= options_.max_bytes) return;
    ::unlink(entry.path.c_str());
    bytes -= entry.bytes;
  }
}

}  // namespace anemone
