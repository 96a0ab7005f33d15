// base/file_identity.h: tells one file from another, and from what it is after it was written
// again, as far as the system tells without reading it.
#ifndef ANEMONE_BASE_FILE_IDENTITY_H_
#define ANEMONE_BASE_FILE_IDENTITY_H_

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <tuple>

namespace anemone {

// Device, inode, size and time of the last change.
using FileIdentity = std::tuple<dev_t, ino_t, off_t, time_t, int64_t>;

inline timespec ChangeTimeOf(const struct stat& info) {
#ifdef __APPLE__
  return info.st_mtimespec;
#else
  return info.st_mtim;
#endif
}

inline FileIdentity IdentityOf(const struct stat& info) {
  const timespec changed = ChangeTimeOf(info);
  return {info.st_dev, info.st_ino, info.st_size, changed.tv_sec, changed.tv_nsec};
}

// Of the file or folder that has this name now; nullopt: there is none.
inline std::optional<FileIdentity> IdentityAt(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return IdentityOf(info);
}

}  // namespace anemone

#endif  // ANEMONE_BASE_FILE_IDENTITY_H_
