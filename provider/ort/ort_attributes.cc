#include "provider/ort/ort_attributes.h"

#include <onnxruntime_c_api.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "importer/write/to_onnx.h"
#include "provider/ort_status.h"

namespace anemone {
namespace {

using onnx::AttributeProto;

// The attribute's bytes. A list's bytes are those of its elements; strings end with a zero.
template <class T>
absl::StatusOr<std::vector<T>> ReadRaw(const OrtApi& api, const OrtOpAttr* attribute,
                                       OrtOpAttrType type) {
  size_t bytes = 0;
  // This call fails, but sets `bytes` to the required size.
  FromOrt(api, api.ReadOpAttr(attribute, type, nullptr, 0, &bytes)).IgnoreError();
  std::vector<T> values(bytes / sizeof(T));
  if (values.empty()) return values;
  ANEMONE_RETURN_IF_ERROR(
      FromOrt(api, api.ReadOpAttr(attribute, type, values.data(), bytes, &bytes)));
  return values;
}

absl::StatusOr<std::string> ReadText(const OrtApi& api, const OrtOpAttr* attribute,
                                     OrtOpAttrType type) {
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<char> raw, ReadRaw<char>(api, attribute, type));
  std::string text(raw.begin(), raw.end());
  if (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

absl::Status ReadTensor(const OrtApi& api, const OrtOpAttr* attribute, AttributeProto& proto) {
  OrtValue* value = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.OpAttr_GetTensorAttributeAsOrtValue(attribute, &value)));
  const OrtOwned<OrtValue> owned(value, api.ReleaseValue);
  ANEMONE_ASSIGN_OR_RETURN(const Tensor tensor, ReadValue(api, value));
  *proto.mutable_t() = ToProto(tensor);
  return absl::OkStatus();
}

absl::Status ReadTensorType(const OrtApi& api, const OrtTypeInfo* info, onnx::TypeProto& type) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;  // the type's own
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.CastTypeInfoToTensorInfo(info, &tensor)));
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetTensorElementType(tensor, &element)));
  const DataType known = TypeNumbered(element);
  if (known == DataType::kUndefined) return absl::OkStatus();
  type.mutable_tensor_type()->set_elem_type(static_cast<int>(known));
  size_t rank = 0;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetDimensionsCount(tensor, &rank)));
  // A scalar or a value of unknown rank: this version of the API does not distinguish them. The
  // importer's inference does, except for inputs of the graph.
  if (rank == 0) return absl::OkStatus();
  std::vector<int64_t> dims(rank);
  std::vector<const char*> symbols(rank);
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetDimensions(tensor, dims.data(), rank)));
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetSymbolicDimensions(tensor, symbols.data(), rank)));
  onnx::TensorShapeProto& shape = *type.mutable_tensor_type()->mutable_shape();
  for (size_t i = 0; i < rank; ++i) {
    onnx::TensorShapeProto::Dimension& dim = *shape.add_dim();
    if (dims[i] >= 0) {
      dim.set_dim_value(dims[i]);
    } else if (symbols[i] != nullptr && *symbols[i] != '\0') {
      dim.set_dim_param(symbols[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> ReadValue(const OrtApi& api, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetTensorTypeAndShape(value, &raw)));
  const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetTensorElementType(raw, &type)));
  if (type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return TensorOf(api, value);
  size_t rank = 0;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetDimensionsCount(raw, &rank)));
  std::vector<int64_t> dims(rank);
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetDimensions(raw, dims.data(), rank)));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(dims));
  std::vector<std::string> strings(count);
  for (int64_t i = 0; i < count; ++i) {
    size_t length = 0;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetStringTensorElementLength(value, i, &length)));
    strings[i].resize(length);
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api, api.GetStringTensorElement(value, length, i, strings[i].data())));
  }
  return Tensor::Strings(std::move(dims), std::move(strings));
}

absl::StatusOr<onnx::TypeProto> ReadType(const OrtApi& api, const OrtTypeInfo* info) {
  onnx::TypeProto type;
  if (info == nullptr) return type;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetOnnxTypeFromTypeInfo(info, &kind)));
  if (kind == ONNX_TYPE_TENSOR) {
    ANEMONE_RETURN_IF_ERROR(ReadTensorType(api, info, type));
  } else if (kind == ONNX_TYPE_SEQUENCE) {
    const OrtSequenceTypeInfo* sequence = nullptr;
    OrtTypeInfo* element = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.CastTypeInfoToSequenceTypeInfo(info, &sequence)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetSequenceElementType(sequence, &element)));
    const OrtOwned<OrtTypeInfo> owned(element, api.ReleaseTypeInfo);
    ANEMONE_ASSIGN_OR_RETURN(*type.mutable_sequence_type()->mutable_elem_type(),
                             ReadType(api, element));
  } else if (kind == ONNX_TYPE_OPTIONAL) {
    const OrtOptionalTypeInfo* optional = nullptr;
    OrtTypeInfo* element = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.CastTypeInfoToOptionalTypeInfo(info, &optional)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetOptionalContainedTypeInfo(optional, &element)));
    const OrtOwned<OrtTypeInfo> owned(element, api.ReleaseTypeInfo);
    ANEMONE_ASSIGN_OR_RETURN(*type.mutable_optional_type()->mutable_elem_type(),
                             ReadType(api, element));
  }
  return type;
}

absl::StatusOr<std::optional<AttributeProto>> ReadAttribute(const OrtApi& api,
                                                            const OrtOpAttr* attribute) {
  AttributeProto proto;
  const char* name = nullptr;
  OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.OpAttr_GetName(attribute, &name)));
  // The call fails for kinds that the C API does not know.
  if (!FromOrt(api, api.OpAttr_GetType(attribute, &type)).ok()) return std::nullopt;
  proto.set_name(name);
  switch (type) {
    case ORT_OP_ATTR_INT:
    case ORT_OP_ATTR_INTS: {
      ANEMONE_ASSIGN_OR_RETURN(const auto ints, ReadRaw<int64_t>(api, attribute, type));
      proto.set_type(type == ORT_OP_ATTR_INT ? AttributeProto::INT : AttributeProto::INTS);
      if (type == ORT_OP_ATTR_INTS) proto.mutable_ints()->Add(ints.begin(), ints.end());
      if (type == ORT_OP_ATTR_INT && !ints.empty()) proto.set_i(ints.front());
      return proto;
    }
    case ORT_OP_ATTR_FLOAT:
    case ORT_OP_ATTR_FLOATS: {
      ANEMONE_ASSIGN_OR_RETURN(const auto floats, ReadRaw<float>(api, attribute, type));
      proto.set_type(type == ORT_OP_ATTR_FLOAT ? AttributeProto::FLOAT : AttributeProto::FLOATS);
      if (type == ORT_OP_ATTR_FLOATS) proto.mutable_floats()->Add(floats.begin(), floats.end());
      if (type == ORT_OP_ATTR_FLOAT && !floats.empty()) proto.set_f(floats.front());
      return proto;
    }
    case ORT_OP_ATTR_STRING: {
      ANEMONE_ASSIGN_OR_RETURN(*proto.mutable_s(), ReadText(api, attribute, type));
      proto.set_type(AttributeProto::STRING);
      return proto;
    }
    case ORT_OP_ATTR_STRINGS: {
      ANEMONE_ASSIGN_OR_RETURN(const std::string text, ReadText(api, attribute, type));
      for (absl::string_view part : absl::StrSplit(text, '\0')) {
        proto.add_strings(std::string(part));
      }
      proto.set_type(AttributeProto::STRINGS);
      return proto;
    }
    case ORT_OP_ATTR_TENSOR:
      proto.set_type(AttributeProto::TENSOR);
      ANEMONE_RETURN_IF_ERROR(ReadTensor(api, attribute, proto));
      return proto;
    default:
      return std::nullopt;
  }
}

}  // namespace anemone
