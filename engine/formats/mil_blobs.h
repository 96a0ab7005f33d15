// engine/formats/mil_blobs.h: the weights file beside a MIL text. A header of 64 bytes, then for
// each tensor a chunk: a header of 64 bytes (magic, size, place of the data) and the data, from a
// multiple of 64 on. MIL names a tensor by the offset of its chunk's header (orion.json 8: anything
// else reads garbage). Little endian; floats are fp16. Facts: netplist.md, orion.json surfaces
// "blobfile".
#ifndef ANEMONE_ENGINE_FORMATS_MIL_BLOBS_H_
#define ANEMONE_ENGINE_FORMATS_MIL_BLOBS_H_

#include <cstddef>
#include <cstdint>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"

namespace anemone {

class MilBlobWriter {
 public:
  // Writes the header. `out` must outlive the writer; Finish() says whether all was written.
  explicit MilBlobWriter(std::ostream& out);

  // Appends the tensor (floats as fp16, integers and bools as they are); the offset that MIL names.
  int64_t Add(const Tensor& tensor);

  // kDataLoss if `out` failed.
  absl::Status Finish();

 private:
  std::ostream& out_;
  int64_t size_ = 0;
};

// The bytes of the chunk whose header stands at `offset` of a weights file: a view into `file`.
// kInvalidArgument: no chunk is there, or it does not fit into the file.
absl::StatusOr<absl::Span<const std::byte>> MilBlobAt(absl::Span<const std::byte> file,
                                                      int64_t offset);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_BLOBS_H_
