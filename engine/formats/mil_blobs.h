// engine/formats/mil_blobs.h: writes and reads the weights file that belongs to a MIL text. The
// file is a header of 64 bytes and one chunk for each tensor. A chunk is a header of 64 bytes
// (magic number, size and offset of the data, 64 bits each) and the data, which starts at a
// multiple of 64. MIL refers to a tensor by the offset of its chunk's header (orion.json 8: any
// other offset reads garbage). Integers are little endian; floats are fp16. Types of less than 8
// bits are packed, the first element in the lowest bits. Facts: netplist.md, orion.json surfaces
// "blobfile"; the codes of types and the bits of padding: coremltools BlobDataType.hpp,
// StorageFormat.hpp.
#ifndef ANEMONE_ENGINE_FORMATS_MIL_BLOBS_H_
#define ANEMONE_ENGINE_FORMATS_MIL_BLOBS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"

namespace anemone {

// Stores a tensor in the weights file as elements of a MIL type, and returns the offset by which
// MIL refers to it (MilBlobWriter::Add).
using MilBlobSink = std::function<int64_t(const Tensor&, absl::string_view dtype)>;

// The type of the elements of a chunk; uint8, of eight elements each, for "uint1". nullopt if a
// chunk cannot have the MIL type.
std::optional<DataType> MilBlobType(absl::string_view dtype);
// The MIL type of a tensor's elements ("uint8"); null if a chunk cannot hold them.
const char* MilBlobDtype(DataType type);

// The number of bytes of the chunk's data.
int64_t MilBlobBytes(const Tensor& tensor, absl::string_view dtype);

class MilBlobWriter {
 public:
  // Writes the header. `out` must outlive the writer. Write errors, and a time limit that is over
  // (base/deadline.h), are reported by Finish(); then nothing more is written.
  explicit MilBlobWriter(std::ostream& out);

  // Appends the tensor. `dtype` is "fp16", to which floats are rounded, the tensor's own type
  // ("uint16", "int8", "uint8", "int4", "uint4"), or "uint1" for a tensor of uint8, each with eight
  // elements. Returns the offset by which MIL refers to it.
  int64_t Add(const Tensor& tensor, absl::string_view dtype);

  // kDataLoss if a write failed; kDeadlineExceeded, kCancelled.
  absl::Status Finish();

 private:
  void WriteData(const Tensor& tensor, absl::string_view dtype);

  std::ostream& out_;
  int64_t size_ = 0;
  absl::Status in_time_;
};

// The data of the chunk whose header is at `offset` of a weights file, as a view into `file`.
// kInvalidArgument if there is no chunk header, or the chunk does not fit into the file.
absl::StatusOr<absl::Span<const std::byte>> MilBlobAt(absl::Span<const std::byte> file,
                                                      int64_t offset);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_BLOBS_H_
