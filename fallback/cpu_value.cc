#include "fallback/cpu_value.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "fallback/ort_types.h"

namespace anemone {
namespace {

constexpr absl::string_view kWhere = "value";

// The type number with which `runtime` creates tensors of `type`, or nullopt if it cannot. 1.24 and
// 1.27 create the late types by ONNX's numbers but report them by their own numbers. So create an
// empty tensor and read back its type.
std::optional<ONNXTensorElementDataType> NumberIn(const OrtRuntime& runtime, DataType type) {
  if (type <= DataType::kInt4) {
    const bool taken = type != DataType::kUndefined && type != DataType::kComplex64 &&
                       type != DataType::kComplex128;
    return taken ? std::make_optional(static_cast<ONNXTensorElementDataType>(type)) : std::nullopt;
  }
  const OrtApi& api = runtime.api();
  const int told = NumberOf(type);
  for (const int number : {told, static_cast<int>(type)}) {
    const auto candidate = static_cast<ONNXTensorElementDataType>(number);
    constexpr int64_t kEmpty = 0;
    std::byte none{};
    OrtValue* raw = nullptr;
    const OrtPtr<OrtStatus> refused(
        api.CreateTensorWithDataAsOrtValue(runtime.cpu_memory(), &none, 0, &kEmpty, 1, candidate,
                                           &raw),
        api.ReleaseStatus);
    if (refused != nullptr) continue;
    const OrtPtr<OrtValue> value(raw, api.ReleaseValue);
    OrtTensorTypeAndShapeInfo* shape = nullptr;
    if (!runtime.ToStatus(api.GetTensorTypeAndShape(raw, &shape), kWhere).ok()) continue;
    const OrtPtr<OrtTensorTypeAndShapeInfo> info(shape, api.ReleaseTensorTypeAndShapeInfo);
    ONNXTensorElementDataType made = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    if (!runtime.ToStatus(api.GetTensorElementType(shape, &made), kWhere).ok()) continue;
    if (made == told) return candidate;
  }
  return std::nullopt;
}

absl::StatusOr<ONNXTensorElementDataType> Numbered(const OrtRuntime& runtime, DataType type) {
  const auto number = NumberIn(runtime, type);
  if (number.has_value()) return *number;
  return absl::UnimplementedError(absl::StrCat(
      "value: want a type that ONNX Runtime ", runtime.version(), " takes over its C API, found ",
      DataTypeName(type), " (", static_cast<int>(type), "); cast it inside the model"));
}

bool IsAligned(DataType type, const void* bytes) {
  const uintptr_t alignment = std::clamp(BitsOf(type) / 8, 1, 8);
  return reinterpret_cast<uintptr_t>(bytes) % alignment == 0;
}

// The same elements, aligned, and written out if the tensor is a fill. A large table at a
// misaligned offset of the model file is copied in pieces, and the pages of each copied piece are
// released, so that the table and its copy are not both in memory.
Tensor Aligned(const Tensor& tensor) {
  if (tensor.is_fill()) return tensor.Copy();
  const absl::Span<const std::byte> from = tensor.bytes();
  if (IsAligned(tensor.type(), from.data())) return tensor;
  constexpr size_t kPiece = size_t{1} << 22;
  Tensor copy = Tensor::Zeros(tensor.type(), tensor.dims());
  auto* const to = copy.mutable_data<std::byte>();
  for (size_t at = 0; at < from.size(); at += kPiece) {
    const absl::Span<const std::byte> piece = from.subspan(at, kPiece);
    std::memcpy(to + at, piece.data(), piece.size());
    MappedFile::GiveBack(piece);
  }
  return copy;
}

// The deleter releases the value first, then the owner of its bytes.
std::shared_ptr<OrtValue> Share(std::shared_ptr<const OrtRuntime> runtime, OrtValue* value,
                                std::shared_ptr<const void> owner) {
  return {value, [runtime = std::move(runtime), owner = std::move(owner)](OrtValue* v) {
            runtime->api().ReleaseValue(v);
          }};
}

}  // namespace

bool CpuValue::Takes(const OrtRuntime& runtime, DataType type) {
  return NumberIn(runtime, type).has_value();
}

absl::StatusOr<CpuValue> CpuValue::FromTensor(std::shared_ptr<const OrtRuntime> runtime,
                                              const Tensor& tensor) {
  if (tensor.type() == DataType::kString) return FromStrings(std::move(runtime), tensor);
  auto backing = std::make_shared<const Tensor>(Aligned(tensor));
  // The const_cast is safe: ONNX Runtime only reads inputs.
  const absl::Span<std::byte> bytes(const_cast<std::byte*>(backing->bytes().data()),
                                    backing->bytes().size());
  return OverBytes(std::move(runtime), tensor.type(), tensor.dims(), bytes, std::move(backing));
}

absl::StatusOr<CpuValue> CpuValue::OverMemory(std::shared_ptr<const OrtRuntime> runtime,
                                              DataType type, absl::Span<const int64_t> dims,
                                              absl::Span<std::byte> bytes) {
  ANEMONE_RETURN_IF_ERROR(ElementCount(dims).status());
  const int64_t want = ByteSize(type, dims);
  if (type == DataType::kString || !IsAligned(type, bytes.data()) ||
      static_cast<int64_t>(bytes.size()) != want) {
    return absl::InvalidArgumentError(
        absl::StrCat("output memory: want ", want, " bytes aligned for ", DataTypeName(type), " ",
                     DimsToString(dims), ", found ", bytes.size(), " at ",
                     absl::Hex(reinterpret_cast<uintptr_t>(bytes.data()))));
  }
  return OverBytes(std::move(runtime), type, dims, bytes, nullptr);
}

absl::StatusOr<CpuValue> CpuValue::OverBytes(std::shared_ptr<const OrtRuntime> runtime,
                                             DataType type, absl::Span<const int64_t> dims,
                                             absl::Span<std::byte> bytes,
                                             std::shared_ptr<const void> owner) {
  ANEMONE_ASSIGN_OR_RETURN(const ONNXTensorElementDataType number, Numbered(*runtime, type));
  OrtValue* value = nullptr;
  ANEMONE_RETURN_IF_ERROR(runtime->ToStatus(runtime->api().CreateTensorWithDataAsOrtValue(
                                                runtime->cpu_memory(), bytes.data(), bytes.size(),
                                                dims.data(), dims.size(), number, &value),
                                            kWhere));
  return CpuValue(runtime, Share(runtime, value, std::move(owner)));
}

absl::StatusOr<CpuValue> CpuValue::FromStrings(std::shared_ptr<const OrtRuntime> runtime,
                                               const Tensor& tensor) {
  const OrtApi& api = runtime->api();
  OrtAllocator* allocator = nullptr;
  ANEMONE_RETURN_IF_ERROR(
      runtime->ToStatus(api.GetAllocatorWithDefaultOptions(&allocator), kWhere));
  OrtValue* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(runtime->ToStatus(
      api.CreateTensorAsOrtValue(allocator, tensor.dims().data(), tensor.dims().size(),
                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &raw),
      kWhere));
  CpuValue value(runtime, Share(runtime, raw, nullptr));
  // Element by element, because FillStringTensor() ends a string at its first zero byte.
  for (size_t i = 0; i < tensor.strings().size(); ++i) {
    const std::string& element = tensor.strings()[i];
    char* buffer = nullptr;
    ANEMONE_RETURN_IF_ERROR(runtime->ToStatus(
        api.GetResizedStringTensorElementBuffer(raw, i, element.size(), &buffer), kWhere));
    std::copy(element.begin(), element.end(), buffer);
  }
  return value;
}

absl::StatusOr<CpuValue> CpuValue::Compose(std::shared_ptr<const OrtRuntime> runtime, int onnx_type,
                                           absl::Span<const CpuValue> parts) {
  std::vector<const OrtValue*> in;
  for (const CpuValue& part : parts) in.push_back(part.get());
  OrtValue* value = nullptr;
  ANEMONE_RETURN_IF_ERROR(runtime->ToStatus(
      runtime->api().CreateValue(in.data(), in.size(), static_cast<ONNXType>(onnx_type), &value),
      onnx_type == ONNX_TYPE_MAP ? "map" : "sequence"));
  // The new value may share the parts' memory, so it keeps the parts alive.
  auto owners = std::make_shared<const std::vector<CpuValue>>(parts.begin(), parts.end());
  return CpuValue(runtime, Share(runtime, value, std::move(owners)));
}

absl::StatusOr<CpuValue> CpuValue::Sequence(std::shared_ptr<const OrtRuntime> runtime,
                                            absl::Span<const CpuValue> elements) {
  for (const CpuValue& element : elements) {
    if (element.kind() != Kind::kTensor && element.kind() != Kind::kMap) {
      return absl::InvalidArgumentError(
          "sequence: want tensors or maps, found another kind of value");
    }
  }
  return Compose(std::move(runtime), ONNX_TYPE_SEQUENCE, elements);
}

absl::StatusOr<CpuValue> CpuValue::Map(std::shared_ptr<const OrtRuntime> runtime,
                                       const CpuValue& keys, const CpuValue& values) {
  if (keys.kind() != Kind::kTensor || values.kind() != Kind::kTensor) {
    return absl::InvalidArgumentError("map: want two tensors, found another kind of value");
  }
  return Compose(std::move(runtime), ONNX_TYPE_MAP, {keys, values});
}

CpuValue CpuValue::Adopt(std::shared_ptr<const OrtRuntime> runtime, OrtValue* value) {
  return CpuValue(runtime, Share(runtime, value, nullptr));
}

CpuValue::Kind CpuValue::kind() const {
  if (value_ == nullptr) return Kind::kNothing;
  const OrtApi& api = runtime_->api();
  int has_value = 0;
  if (!runtime_->ToStatus(api.HasValue(get(), &has_value), kWhere).ok() || has_value == 0) {
    return Kind::kNothing;
  }
  int is_tensor = 0;  // asked first, because GetValueType() makes a description of the whole type
  if (runtime_->ToStatus(api.IsTensor(get(), &is_tensor), kWhere).ok() && is_tensor != 0) {
    return Kind::kTensor;
  }
  ONNXType type = ONNX_TYPE_UNKNOWN;
  if (!runtime_->ToStatus(api.GetValueType(get(), &type), kWhere).ok()) return Kind::kOther;
  switch (type) {
    case ONNX_TYPE_SEQUENCE:
      return Kind::kSequence;
    case ONNX_TYPE_MAP:
      return Kind::kMap;
    default:
      return Kind::kOther;
  }
}

absl::StatusOr<Tensor> CpuValue::ToTensor() const {
  if (kind() != Kind::kTensor) {
    return absl::FailedPreconditionError("value: want a tensor, found another kind of value");
  }
  const OrtApi& api = runtime_->api();
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.GetTensorTypeAndShape(get(), &raw), kWhere));
  const OrtPtr<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.GetTensorElementType(raw, &number), kWhere));
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.GetDimensionsCount(raw, &rank), kWhere));
  std::vector<int64_t> dims(rank);
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.GetDimensions(raw, dims.data(), rank), kWhere));
  const DataType type = TypeNumbered(number);
  if (type == DataType::kUndefined) {
    return absl::UnimplementedError(absl::StrCat("value: ONNX Runtime ", runtime_->version(),
                                                 "'s type number ", static_cast<int>(number),
                                                 " is not known to this version of Anemone"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(dims));
  if (type == DataType::kString) {
    ANEMONE_ASSIGN_OR_RETURN(std::vector<std::string> strings, Strings(count));
    return Tensor::Strings(std::move(dims), std::move(strings));
  }
  const void* data = nullptr;
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.GetTensorData(get(), &data), kWhere));
  const absl::Span<const std::byte> bytes(static_cast<const std::byte*>(data),
                                          ByteSize(type, dims));
  return Tensor::View(type, std::move(dims), bytes, value_);
}

absl::StatusOr<OnnxValue> CpuValue::ToValue() const {
  const Kind this_kind = kind();
  if (this_kind == Kind::kNothing) return OnnxValue();
  if (this_kind == Kind::kOther) {
    return absl::UnimplementedError(
        "value: want a tensor, a sequence or a map, found a sparse or opaque one");
  }
  if (this_kind == Kind::kTensor) {
    ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, ToTensor());
    return OnnxValue(std::move(tensor));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<CpuValue> parts, Elements());
  std::vector<OnnxValue> elements;
  for (const CpuValue& part : parts) {
    ANEMONE_ASSIGN_OR_RETURN(elements.emplace_back(), part.ToValue());
  }
  if (this_kind == Kind::kSequence) return OnnxValue::Sequence(std::move(elements));
  return OnnxValue::Map(elements[0].tensor, elements[1].tensor);
}

absl::StatusOr<std::vector<std::string>> CpuValue::Strings(int64_t count) const {
  const OrtApi& api = runtime_->api();
  size_t length = 0;
  ANEMONE_RETURN_IF_ERROR(
      runtime_->ToStatus(api.GetStringTensorDataLength(get(), &length), kWhere));
  std::string joined(length, '\0');
  std::vector<size_t> starts(count);
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(
      api.GetStringTensorContent(get(), joined.data(), length, starts.data(), starts.size()),
      kWhere));
  std::vector<std::string> strings;
  strings.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    const size_t end = i + 1 < count ? starts[i + 1] : length;
    strings.push_back(joined.substr(starts[i], end - starts[i]));
  }
  return strings;
}

absl::StatusOr<std::vector<CpuValue>> CpuValue::Elements() const {
  const Kind this_kind = kind();
  if (this_kind != Kind::kSequence && this_kind != Kind::kMap) {
    return absl::FailedPreconditionError(
        "value: want a sequence or a map, found another kind of value");
  }
  const OrtApi& api = runtime_->api();
  OrtAllocator* allocator = nullptr;
  size_t count = 0;
  ANEMONE_RETURN_IF_ERROR(
      runtime_->ToStatus(api.GetAllocatorWithDefaultOptions(&allocator), kWhere));
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.GetValueCount(get(), &count), kWhere));
  std::vector<CpuValue> elements;
  for (size_t i = 0; i < count; ++i) {
    OrtValue* element = nullptr;
    ANEMONE_RETURN_IF_ERROR(
        runtime_->ToStatus(api.GetValue(get(), static_cast<int>(i), allocator, &element), kWhere));
    elements.push_back(CpuValue(runtime_, Share(runtime_, element, value_)));
  }
  return elements;
}

}  // namespace anemone
