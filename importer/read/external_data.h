// importer/read/external_data.h: reads tensors whose bytes are stored in files next to the model.
// Each file is mapped once; the tensors are views of it.
//
// Which files a model may name: a model is untrusted input, and the data it reads may be shown to
// others, so it must not reach /etc/passwd. `location` is relative to the model's folder, and the
// file it names must
//   1. be in that folder or a subfolder according to its path as written (no absolute path, no
//      `..` that leaves the folder), and
//   2. also be there after all symbolic links are resolved. As an exception, the file may itself be
//      a symbolic link (in a folder that passes rule 2) to a file in the folder that contains the
//      model file after links are resolved. The cache of Hugging Face needs the exception:
//      snapshots/<commit>/model.onnx and model.onnx_data are both links into ../../blobs/.
// And the file must have one name: a second one (a hard link) may be in another folder.
#ifndef ANEMONE_IMPORTER_READ_EXTERNAL_DATA_H_
#define ANEMONE_IMPORTER_READ_EXTERNAL_DATA_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "onnx/onnx_pb.h"

namespace anemone {

class ExternalData {
 public:
  // For a model file. Its folder is the parent of `model_path`, without resolving links.
  static ExternalData BesideModel(const std::string& model_path);
  // For a model in memory; "" refuses all external data.
  static ExternalData InFolder(const std::string& folder);

  struct Bytes {
    absl::Span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  // The `size` bytes of `tensor`, whose data_location is EXTERNAL. `what` names it in messages.
  // Errors: kNotFound (no such file), kDataLoss (the file is too short), kInvalidArgument (a
  // location that leaves the folder; an offset or length that is not a number, is negative, or does
  // not fit the tensor).
  absl::StatusOr<Bytes> Find(const onnx::TensorProto& tensor, int64_t size, absl::string_view what);

  // The file, if a model may name it: what was opened is checked, so a file that is replaced by a
  // link meanwhile is not followed. Errors: those of Find(); kAborted: it was replaced just now.
  absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& location);

 private:
  absl::StatusOr<std::string> Resolve(const std::string& location) const;
  bool IsInside(const std::filesystem::path& path, const std::filesystem::path& real) const;

  std::string folder_;
  std::string model_path_;  // "" for a model in memory
  absl::flat_hash_map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_EXTERNAL_DATA_H_
