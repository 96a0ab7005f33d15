// importer/read/skeleton.h: a ModelProto without its weights. One walk over the wire format copies
// everything but the large tensor payloads, which stay where they are: a model of 500 MB becomes
// a skeleton of kilobytes for protobuf to parse, and tensors point into the mapped file.
//
// A TensorProto whose payload was taken out carries its number in TensorProto.segment, a field
// that ONNX never came to use (a file that uses it is refused):
//
//   segment.begin = i, segment.end = i + 1   ->   payloads[i]
//
// The ONNX Runtime plugin builds the same thing from ONNX Runtime's graph with AddPayload().
#ifndef ANEMONE_IMPORTER_READ_SKELETON_H_
#define ANEMONE_IMPORTER_READ_SKELETON_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// Payloads from this size on are taken out.
inline constexpr size_t kPayloadFrom = 1024;

// Messages may lie in messages so deep; a body of If or Loop takes three levels.
inline constexpr int kMaxMessageDepth = 200;

struct Payload {
  absl::Span<const std::byte> bytes;
  int field = 0;  // of TensorProto: raw_data, or float_data or double_data, packed
};

struct Skeleton {
  onnx::ModelProto proto;
  std::vector<Payload> payloads;
  std::shared_ptr<const void> owner;  // keeps the payloads' bytes alive
};

// Walks and parses `file`, whose bytes `owner` keeps alive. Training information is left out.
// Errors: kDataLoss (truncated, not protobuf's wire format; the message says at which byte),
// kResourceExhausted (nested too deep, more than 2 GiB besides the payloads).
absl::StatusOr<std::unique_ptr<const Skeleton>> MakeSkeleton(absl::string_view file,
                                                             std::shared_ptr<const void> owner);

// Makes `bytes`, laid out as TensorProto.raw_data, the payload of `tensor`, a part of
// `skeleton.proto`.
void AddPayload(absl::Span<const std::byte> bytes, Skeleton* skeleton, onnx::TensorProto* tensor);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_SKELETON_H_
