// provider/unchanged_file.h: a file that a session reads again later, for another size or new
// weights. If it was replaced or written meanwhile, its weights do not fit those that run.
#ifndef ANEMONE_PROVIDER_UNCHANGED_FILE_H_
#define ANEMONE_PROVIDER_UNCHANGED_FILE_H_

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file_identity.h"

namespace anemone {

class UnchangedFile {
 public:
  explicit UnchangedFile(std::string path) : path_(std::move(path)), first_(Now()) {}

  // kFailedPrecondition: it is not the file that it was, by base/file_identity.h.
  absl::Status Check() const {
    if (Now() == first_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": the file has changed since it was loaded; load the model again"));
  }

 private:
  // Nullopt: there is none.
  std::optional<FileIdentity> Now() const {
    struct stat info;
    if (::stat(path_.c_str(), &info) != 0) return std::nullopt;
    return IdentityOf(info);
  }

  const std::string path_;
  const std::optional<FileIdentity> first_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_UNCHANGED_FILE_H_
