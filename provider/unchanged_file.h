// provider/unchanged_file.h: a file that a session reads again later, for another size or new
// weights. If it was replaced or written meanwhile, its weights do not fit those that run.
#ifndef ANEMONE_PROVIDER_UNCHANGED_FILE_H_
#define ANEMONE_PROVIDER_UNCHANGED_FILE_H_

#include <sys/stat.h>

#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace anemone {

class UnchangedFile {
 public:
  explicit UnchangedFile(std::string path) : path_(std::move(path)), first_(Facts()) {}

  // kFailedPrecondition: it is not the file that it was, as far as the system tells without reading
  // it: its place on the disk, its size and its time.
  absl::Status Check() const {
    if (Facts() == first_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": the file has changed since it was loaded; load the model again"));
  }

 private:
  using AllFacts = std::tuple<bool, dev_t, ino_t, off_t, time_t, long>;
  AllFacts Facts() const {
    struct stat info = {};
    const bool exists = ::stat(path_.c_str(), &info) == 0;
#ifdef __APPLE__
    const timespec& time = info.st_mtimespec;
#else
    const timespec& time = info.st_mtim;
#endif
    return {exists, info.st_dev, info.st_ino, info.st_size, time.tv_sec, time.tv_nsec};
  }

  const std::string path_;
  const AllFacts first_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_UNCHANGED_FILE_H_
