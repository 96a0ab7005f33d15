// importer/read/skeleton.h: a ModelProto without its weights. One pass over the wire format copies
// everything except large tensor payloads, which remain in the mapped file. A model of 500 MB
// becomes a skeleton of kilobytes for protobuf to parse, and tensors point into the file.
//
// A TensorProto without its payload has the payload's index in TensorProto.segment, a field that
// ONNX has never used (a file that uses it is refused): segment.begin = i and segment.end = i + 1
// stand for payloads[i].
//
// The ONNX Runtime plugin makes a skeleton from ONNX Runtime's graph with AddPayload().
#ifndef ANEMONE_IMPORTER_READ_SKELETON_H_
#define ANEMONE_IMPORTER_READ_SKELETON_H_

#include <google/protobuf/arena.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// By default, payloads of at least this many bytes are left out of the proto.
inline constexpr size_t kPayloadFrom = 1024;

// The end of errors about files that are no model, or a part of one.
inline constexpr char kWriteModelAgain[] = "; give an ONNX model, or copy or export it again";

struct Payload {
  absl::Span<const std::byte> bytes;
  int field = 0;  // of TensorProto: raw_data, or float_data or double_data, packed
};

struct Skeleton {
  google::protobuf::Arena arena;  // of all parts of `proto`
  onnx::ModelProto& proto = *google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  std::vector<Payload> payloads;
  std::shared_ptr<const void> owner;  // keeps the payloads' bytes alive
};

// Parses `file`, whose bytes `owner` keeps alive. Training information is skipped; payloads below
// `payload_from` bytes stay in the proto. Errors: kDataLoss (truncated, or not protobuf's wire
// format, with the byte offset), kResourceExhausted (beyond ModelLimit::kNesting, kModelBytes or
// kStringBytes).
absl::StatusOr<std::unique_ptr<Skeleton>> MakeSkeleton(absl::string_view file,
                                                       std::shared_ptr<const void> owner,
                                                       size_t payload_from = kPayloadFrom);

// Whether some tensor of the model says where its data is, or `file` is no model. Takes a fraction
// of the time of MakeSkeleton().
bool MayHaveExternalData(absl::string_view file);

// Makes `bytes`, in the layout of TensorProto.raw_data, the payload of `tensor`, which is part of
// `skeleton.proto`.
void AddPayload(absl::Span<const std::byte> bytes, Skeleton* skeleton, onnx::TensorProto* tensor);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_SKELETON_H_
