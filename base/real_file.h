// base/real_file.h: opens files of folders that may come from anyone.
//
// A path that was checked may lead to another file when it is opened by its name: a folder or file
// on the way was replaced by a link meanwhile. Here the descriptor decides.
#ifndef ANEMONE_BASE_REAL_FILE_H_
#define ANEMONE_BASE_REAL_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"

namespace anemone {

// Maps the file at `real`, an absolute path without links, and follows no link on the way. `name`
// is used in messages only. Errors: kAborted (a part of the path is a link now), kInvalidArgument
// (the file has several names, of which some may be in other folders), and those of MappedFile.
absl::StatusOr<std::shared_ptr<const MappedFile>> MapRealFile(const std::string& real,
                                                              const std::string& name);

// The absolute path, without links, of the file `name` in `folder`, and "" if it is outside the
// folder. kNotFound: there is no such file; the message is of no use to a user.
absl::StatusOr<std::string> RealPathBelow(const std::string& folder, absl::string_view name);

// Maps the file `name` of `folder`, which may be a link if it stays in the folder. Errors:
// kNotFound, kInvalidArgument (the file is outside the folder), and those of MapRealFile.
absl::StatusOr<std::shared_ptr<const MappedFile>> MapFileBelow(const std::string& folder,
                                                               absl::string_view name);

}  // namespace anemone

#endif  // ANEMONE_BASE_REAL_FILE_H_
