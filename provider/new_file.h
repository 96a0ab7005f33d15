// provider/new_file.h: a file that is there as a whole or not at all, whatever becomes of the
// writer or the machine.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto file, NewFile::Make("net.anemone"));
//   ANEMONE_RETURN_IF_ERROR(file->Write(bytes));
//   return file->PutIntoPlace();  // else it is removed
//
// Until then it stands beside its place under a name that ends in ".tmp", locked: who finds one
// that is not locked may remove it, as its writer is dead.
#ifndef ANEMONE_PROVIDER_NEW_FILE_H_
#define ANEMONE_PROVIDER_NEW_FILE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace anemone {

class NewFile {
 public:
  // Errors: kInvalidArgument (a folder, device or pipe is there), else what the system says; each
  // names the file and what to do.
  static absl::StatusOr<std::unique_ptr<NewFile>> Make(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::Status Write(absl::string_view bytes);
  absl::Status PutIntoPlace();

 private:
  NewFile(const std::string& path, std::string temporary, int file)
      : path_(path), temporary_(std::move(temporary)), file_(file) {}

  std::string path_, temporary_;  // none: it is in its place
  int file_;
};

// Removes `path` if it is a regular file that was left by a dead writer.
void RemoveIfLeft(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_NEW_FILE_H_
