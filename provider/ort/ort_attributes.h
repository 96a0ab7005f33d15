// provider/ort/ort_attributes.h: attributes, types and strings of ONNX Runtime's graph as protos.
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

// Nullopt: of a kind that the C API does not show (a graph, a sparse tensor, a type).
absl::StatusOr<std::optional<onnx::AttributeProto>> ReadAttribute(const OrtApi& api,
                                                                  const OrtOpAttr* attribute);

// Tensors, and sequences and optionals of them; of others, and of null, no `value` case is set.
absl::StatusOr<onnx::TypeProto> ReadType(const OrtApi& api, const OrtTypeInfo* info);

// As TensorOf(), and tensors of strings, which are copied.
absl::StatusOr<Tensor> ReadValue(const OrtApi& api, const OrtValue* value);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_ORT_ATTRIBUTES_H_
