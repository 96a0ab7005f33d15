// importer/read/tensor_reader.h: converts TensorProto to Tensor. It supports every element type,
// from raw_data or the typed fields, whether the data is inline, in the skeleton's payloads or
// external. Large payloads are not copied if they already have the layout of memory (raw_data,
// packed floats and doubles); varint-coded fields are decoded.
#ifndef ANEMONE_IMPORTER_READ_TENSOR_READER_H_
#define ANEMONE_IMPORTER_READ_TENSOR_READER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "importer/read/external_data.h"
#include "importer/read/skeleton.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// Converts a type number of a file; `what` names its owner in the error (kInvalidArgument).
absl::StatusOr<DataType> ReadDataType(int32_t number, absl::string_view what);

class TensorReader {
 public:
  // `skeleton` (null if there are no payloads) and `external` (null to refuse external data) must
  // outlive the reader.
  TensorReader(const Skeleton* skeleton, ExternalData* external)
      : skeleton_(skeleton), external_(external) {}

  // `what` ("initializer 'w'") names the tensor in messages. Errors: kInvalidArgument (dims,
  // type and data disagree), kResourceExhausted (beyond ModelLimit::kTensorBytes), and those of
  // ExternalData::Find.
  absl::StatusOr<Tensor> Read(const onnx::TensorProto& proto, absl::string_view what) const;

  // Kept compressed if it is float32 and not small, else expanded; kResourceExhausted if the
  // expanded tensor would exceed ModelLimit::kDenseBytes.
  absl::StatusOr<Tensor> ReadSparse(const onnx::SparseTensorProto& proto,
                                    absl::string_view what) const;

 private:
  const Skeleton* skeleton_;
  ExternalData* external_;
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_TENSOR_READER_H_
