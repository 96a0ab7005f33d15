// provider/new_file.h: writes a file atomically: after a crash of the process or the machine, the
// complete new file exists, or the old state is unchanged.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto file, NewFile::Make("net.anemone"));
//   ANEMONE_RETURN_IF_ERROR(file->Write(bytes));
//   return file->PutIntoPlace();  // without this call, the destructor removes the file
//
// Until PutIntoPlace(), the file is in the same folder under a name that ends in ".tmp", and
// locked. A ".tmp" file that is not locked may be removed: its writer is dead.
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
  // Errors: kInvalidArgument (`path` is a folder, device or pipe), or the system's error. Each
  // names the file and a remedy.
  static absl::StatusOr<std::unique_ptr<NewFile>> Make(const std::string& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::Status Write(absl::string_view bytes);
  absl::Status PutIntoPlace();

 private:
  NewFile(const std::string& path, std::string temporary, int file)
      : path_(path), temporary_(std::move(temporary)), file_(file) {}

  std::string path_;
  std::string temporary_;  // empty after PutIntoPlace()
  int file_;
};

// Removes `path` if it is a regular file that a dead writer left.
void RemoveIfLeft(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_NEW_FILE_H_
