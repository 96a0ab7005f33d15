// provider/unchanged_file.h: a file that a session reads again later, for another size or new
// weights. If it was replaced or written meanwhile, its weights do not fit those that run.
#ifndef ANEMONE_PROVIDER_UNCHANGED_FILE_H_
#define ANEMONE_PROVIDER_UNCHANGED_FILE_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/file_identity.h"

namespace anemone {

class UnchangedFile {
 public:
  explicit UnchangedFile(std::string path) : path_(std::move(path)), first_(IdentityAt(path_)) {}

  // kFailedPrecondition: it is not the file that it was, by base/file_identity.h.
  absl::Status Check() const {
    if (IdentityAt(path_) == first_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": the file has changed since it was loaded; load the model again"));
  }

 private:
  const std::string path_;
  const std::optional<FileIdentity> first_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_UNCHANGED_FILE_H_
