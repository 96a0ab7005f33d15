// importer/read/external_data.h: tensors whose bytes lie in files beside the model. Each file is
// mapped once; tensors are views of it.
//
// Which files a model may name. A model is untrusted input, and what it reads may be shown to
// somebody: it must not reach /etc/passwd. `location` is relative to the model's folder, and the
// file it names must
//   1. lie in that folder or below it, by its path as written (no absolute path, no way out by
//      `..`), and
//   2. really lie there too, after all symbolic links are resolved; or be itself a symbolic link
//      (in folders that pass rule 2) to a file in the very folder where the model file really
//      lies. The second half is for the cache of Hugging Face, where snapshots/<commit>/model.onnx
//      and model.onnx_data are both links into ../../blobs/.
#ifndef ANEMONE_IMPORTER_READ_EXTERNAL_DATA_H_
#define ANEMONE_IMPORTER_READ_EXTERNAL_DATA_H_

#include <cstddef>
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
  // For a model file; its folder is the one that `model_path` names, links not resolved.
  static ExternalData BesideModel(const std::string& model_path);
  // For a model in memory; "" refuses all external data.
  static ExternalData InFolder(const std::string& folder);

  struct Bytes {
    absl::Span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  // The `size` bytes of `tensor`, whose data_location is EXTERNAL. `what` names it in messages.
  // Errors: kNotFound (no such file), kDataLoss (the file is too short), kInvalidArgument (a
  // location that leaves the folder; offset or length that is no number, negative, or does not fit
  // the tensor).
  absl::StatusOr<Bytes> Find(const onnx::TensorProto& tensor, int64_t size, absl::string_view what);

 private:
  absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& location);
  absl::StatusOr<std::string> Resolve(const std::string& location) const;

  std::string folder_;
  std::string model_path_;  // "" for a model in memory
  absl::flat_hash_map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_EXTERNAL_DATA_H_
