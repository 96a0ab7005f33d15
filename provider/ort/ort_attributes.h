// provider/ort/ort_attributes.h: converts attributes, types and tensors of ONNX Runtime's graph to
// ONNX protos and Tensors.
#ifndef ANEMONE_PROVIDER_ORT_ORT_ATTRIBUTES_H_
#define ANEMONE_PROVIDER_ORT_ORT_ATTRIBUTES_H_

#include <optional>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "onnx/onnx_pb.h"

struct OrtApi;
struct OrtOpAttr;
struct OrtTypeInfo;
struct OrtValue;

namespace anemone {

// Nullopt if the C API cannot read this kind of attribute (a graph, a sparse tensor, a type).
absl::StatusOr<std::optional<onnx::AttributeProto>> ReadAttribute(const OrtApi& api,
                                                                  const OrtOpAttr* attribute);

// Reads types of tensors, and of sequences and optionals of tensors. For other types and for null,
// the result has no `value` case.
absl::StatusOr<onnx::TypeProto> ReadType(const OrtApi& api, const OrtTypeInfo* info);

// Like TensorOf(), but also takes tensors of strings, which are copied.
absl::StatusOr<Tensor> ReadValue(const OrtApi& api, const OrtValue* value);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_ORT_ATTRIBUTES_H_
