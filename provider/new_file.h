// provider/new_file.h: writes files and folders atomically: after a crash of the process or the
// machine, the complete new file exists, or the old state is unchanged.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto file, NewFile::Make("net.anemone"));
//   ANEMONE_RETURN_IF_ERROR(file->Write(bytes));
//   return file->PutIntoPlace();  // without this call, the destructor removes the file
//
// Until PutIntoPlace(), each is in the same folder under a temporary name
// (provider/temporaries.h).
#ifndef ANEMONE_PROVIDER_NEW_FILE_H_
#define ANEMONE_PROVIDER_NEW_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "provider/temporaries.h"

namespace anemone {

class NewFile {
 public:
  // Errors: kInvalidArgument (`path` is a folder, device or pipe), or the system's error. Each
  // names the file and a remedy.
  static absl::StatusOr<std::unique_ptr<NewFile>> Make(const std::string& path);

  // Only the owner may read and write the file, if the file system has such rights. Call it first.
  void HideFromOthers();
  absl::Status Write(absl::string_view bytes);
  // Without `flush`, a crash of the machine soon after may leave a file with other content.
  absl::Status PutIntoPlace(bool flush = true);

 private:
  NewFile(const std::string& path, std::unique_ptr<Temporary> temporary)
      : path_(path), temporary_(std::move(temporary)) {}

  std::string path_;
  std::unique_ptr<Temporary> temporary_;
};

class NewFolder {
 public:
  // The folder `wanted` must not exist, or be empty: kAlreadyExists. kPermissionDenied: it cannot
  // be written.
  static absl::StatusOr<std::unique_ptr<NewFolder>> Make(const std::string& wanted);
  // The same, but if `wanted` is the folder `replaced`, PutIntoPlace() exchanges the two in one
  // step and removes the old one.
  static absl::StatusOr<std::unique_ptr<NewFolder>> MakeFor(const std::string& wanted,
                                                            const std::string& replaced);

  const std::string& path() const { return temporary_->path(); }  // write the contents here
  absl::Status PutIntoPlace();

 private:
  NewFolder(std::string wanted, std::unique_ptr<Temporary> temporary)
      : wanted_(std::move(wanted)), temporary_(std::move(temporary)) {}

  std::string wanted_;
  std::unique_ptr<Temporary> temporary_;
  bool replaces_ = false;
};

// Writes `parts` to the file that a user named. The target of a link is replaced, not the link. A
// device or pipe, and everything below /dev and /proc, is written directly and never replaced.
// kFailedPrecondition: a pipe that nobody reads.
absl::Status WriteUserFile(const std::string& given, absl::Span<const absl::string_view> parts);

// kInvalidArgument if the file `output` is one of the `inputs`, also by another name or a link.
absl::Status CheckIsNotInput(const std::string& output, absl::Span<const std::string> inputs);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_NEW_FILE_H_
