// base/mapped_file.h: a file as read-only memory. The pages are read when they are touched and
// can be given back at any time, so a model of any size costs no memory of its own.
//
// Tensors share ownership of the mapping they point into. The size is taken once, when the file is
// opened: who shortens a file while it is mapped gets SIGBUS on the next touch of the lost pages,
// as with any mapped file; replacing it by rename, as tools do, is harmless.
#ifndef ANEMONE_BASE_MAPPED_FILE_H_
#define ANEMONE_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {

class MappedFile {
 public:
  // Errors: kNotFound (no such file), kInvalidArgument (a folder, a device, a pipe), kDataLoss
  // (empty), kPermissionDenied or what else the system says; each message begins with `path`.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  // The same for an open file, which may be closed afterwards; `path` is for the messages.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Map(int file, const std::string& path);

  // Gives back the pages that lie in `bytes`, if these are of a file that is mapped; else nothing
  // happens. Who touches them again waits for the file, no more.
  static void GiveBack(absl::Span<const std::byte> bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::Span<const std::byte> bytes() const { return {data_, size_}; }
  absl::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(const std::byte* data, size_t size);

  const std::byte* data_;
  size_t size_;
};

// What a writer says of a file or folder that cannot be made: kPermissionDenied.
absl::Status NotWritten(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_BASE_MAPPED_FILE_H_
