// base/mapped_file.h: a file mapped as read-only memory. Pages are loaded on first access and the
// system can drop them at any time, so that a large model needs no private memory. A file of a few
// pages is read instead, which is faster.
//
// Tensors share ownership of the mapping they point into. The size is read once, when the file is
// opened. As with any mapped file, access to pages that were cut off by truncating the file raises
// SIGBUS. Replacing the file by rename is harmless.
#ifndef ANEMONE_BASE_MAPPED_FILE_H_
#define ANEMONE_BASE_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/file_identity.h"

namespace anemone {

class MappedFile {
 public:
  // Errors: kNotFound (no such file), kInvalidArgument (a folder, a device, a pipe), kDataLoss
  // (empty file), or the code that fits errno, such as kPermissionDenied. Every message begins with
  // `path`.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  // The same for the open file descriptor `file`, which may be closed afterwards. `path` is used in
  // messages only.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Map(int file, const std::string& path);

  // Tells the system to drop the whole pages within `bytes`. The next access reads them from the
  // file again. Does nothing if `bytes` is not part of a mapped file, or of one that was read, or
  // of one of at most kMostKept bytes: reading its pages again takes longer than they are worth.
  static void GiveBack(absl::Span<const std::byte> bytes);
  static constexpr size_t kMostKept = size_t{16} << 20;

  // Whether `bytes` is part of a mapped file that was not read.
  static bool Contains(absl::Span<const std::byte> bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Of the file when it was opened.
  const FileIdentity& identity() const { return identity_; }
  absl::Span<const std::byte> bytes() const { return {data_, size_}; }
  absl::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(const FileIdentity& identity, const std::byte* data, size_t size);
  MappedFile(const FileIdentity& identity, std::vector<std::byte> copy);

  FileIdentity identity_;
  std::vector<std::byte> copy_;  // of a file that was read; of others empty
  const std::byte* data_;
  size_t size_;
};

// The error for a file or folder that cannot be created: kPermissionDenied.
absl::Status NotWritten(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_BASE_MAPPED_FILE_H_
