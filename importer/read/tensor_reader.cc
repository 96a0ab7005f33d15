#include "importer/read/tensor_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/model_limits.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

using onnx::TensorProto;

// A sparse tensor of fewer elements is expanded.
constexpr int64_t kLeastSparse = 1024;

// The field of TensorProto that stores elements of a type if they are not in raw_data.
struct TypedField {
  int number = 0;              // of TensorProto
  int per_element = 1;         // field entries: 2 for complex numbers
  int elements_per_entry = 1;  // several for sub-byte types
};

TypedField FieldOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return {TensorProto::kFloatDataFieldNumber};
    case DataType::kComplex64:
      return {TensorProto::kFloatDataFieldNumber, 2};
    case DataType::kDouble:
      return {TensorProto::kDoubleDataFieldNumber};
    case DataType::kComplex128:
      return {TensorProto::kDoubleDataFieldNumber, 2};
    case DataType::kInt64:
      return {TensorProto::kInt64DataFieldNumber};
    case DataType::kUInt32:
    case DataType::kUInt64:
      return {TensorProto::kUint64DataFieldNumber};
    case DataType::kString:
      return {TensorProto::kStringDataFieldNumber};
    default:
      break;
  }
  const int bits = BitsOf(type);
  return {TensorProto::kInt32DataFieldNumber, 1, bits < 8 ? 8 / bits : 1};
}

const char* FieldName(int number) {
  switch (number) {
    case TensorProto::kRawDataFieldNumber:
      return "raw_data";
    case TensorProto::kFloatDataFieldNumber:
      return "float_data";
    case TensorProto::kDoubleDataFieldNumber:
      return "double_data";
    case TensorProto::kInt32DataFieldNumber:
      return "int32_data";
    case TensorProto::kInt64DataFieldNumber:
      return "int64_data";
    case TensorProto::kUint64DataFieldNumber:
      return "uint64_data";
    default:
      return "string_data";
  }
}

struct Reading {
  const TensorProto& proto;
  absl::string_view what;
  DataType type;
  std::vector<int64_t> dims;
  int64_t elements;

  int64_t size() const { return ByteSize(type, dims); }
};

absl::Status Mismatch(const Reading& r, const char* field, int64_t want, int64_t got,
                      absl::string_view unit) {
  return absl::InvalidArgumentError(absl::StrCat(
      r.what, ": ", DataTypeName(r.type), " ", DimsToString(r.dims), " takes ", want, " ", unit,
      " of ", field, ", found ", got, "; the model is damaged, export it again"));
}

// The elements of `entries`, each converted back to T.
template <class T, class Entries>
Tensor Narrowed(Reading& r, const Entries& entries) {
  Tensor tensor = Tensor::Zeros(r.type, std::move(r.dims));
  T* out = tensor.mutable_data<T>();
  for (const auto entry : entries) *out++ = static_cast<T>(entry);
  return tensor;
}

absl::StatusOr<Tensor> FromTyped(Reading& r) {
  const TypedField field = FieldOf(r.type);
  const TensorProto& p = r.proto;
  const int64_t want = field.elements_per_entry > 1
                           ? (r.elements + field.elements_per_entry - 1) / field.elements_per_entry
                           : r.elements * field.per_element;
  const auto read = [&](const auto& entries, auto element) -> absl::StatusOr<Tensor> {
    if (entries.size() != want) {
      return Mismatch(r, FieldName(field.number), want, entries.size(), "entries");
    }
    return Narrowed<decltype(element)>(r, entries);
  };
  switch (field.number) {
    case TensorProto::kFloatDataFieldNumber:
      return read(p.float_data(), float{});
    case TensorProto::kDoubleDataFieldNumber:
      return read(p.double_data(), double{});
    case TensorProto::kInt64DataFieldNumber:
      return read(p.int64_data(), int64_t{});
    case TensorProto::kUint64DataFieldNumber:
      if (r.type == DataType::kUInt32) return read(p.uint64_data(), uint32_t{});
      return read(p.uint64_data(), uint64_t{});
    case TensorProto::kStringDataFieldNumber:
      if (p.string_data_size() != want) {
        return Mismatch(r, "string_data", want, p.string_data_size(), "entries");
      }
      return Tensor::Strings(std::move(r.dims), {p.string_data().begin(), p.string_data().end()});
    default:
      break;
  }
  switch (BitsOf(r.type)) {
    case 32:
      return read(p.int32_data(), int32_t{});
    case 16:
      return read(p.int32_data(), uint16_t{});
    default:
      return read(p.int32_data(), uint8_t{});
  }
}

absl::StatusOr<Tensor> FromPayload(Reading& r, const Skeleton* skeleton) {
  const int64_t index = r.proto.segment().begin();
  if (skeleton == nullptr || index < 0 || index >= skeleton->payloads.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(r.what, ": is a segment of another tensor; store it whole"));
  }
  const Payload& payload = skeleton->payloads[index];
  const bool fits = payload.field == TensorProto::kRawDataFieldNumber
                        ? r.type != DataType::kString
                        : payload.field == FieldOf(r.type).number;
  const int64_t want = fits ? r.size() : 0;
  if (payload.bytes.size() != want) {
    return Mismatch(r, FieldName(payload.field), want, payload.bytes.size(), "bytes");
  }
  return Tensor::View(r.type, std::move(r.dims), payload.bytes, skeleton->owner);
}

absl::StatusOr<Tensor> FromRaw(Reading& r) {
  const std::string& raw = r.proto.raw_data();
  if (r.type == DataType::kString) {
    return absl::InvalidArgumentError(
        absl::StrCat(r.what, ": strings cannot be raw_data; store them as string_data"));
  }
  if (raw.size() != r.size()) return Mismatch(r, "raw_data", r.size(), raw.size(), "bytes");
  Tensor tensor = Tensor::Zeros(r.type, std::move(r.dims));
  if (!raw.empty()) std::memcpy(tensor.mutable_data<char>(), raw.data(), raw.size());
  return tensor;
}

}  // namespace

absl::StatusOr<DataType> ReadDataType(int32_t number, absl::string_view what) {
  if (number <= 0 || number > kLastDataType) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": element type ", number,
                                                   " is not known, want 1 to ", kLastDataType,
                                                   "; correct the model"));
  }
  return static_cast<DataType>(number);
}

absl::StatusOr<Tensor> TensorReader::Read(const TensorProto& proto, absl::string_view what) const {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, ReadDataType(proto.data_type(), what));
  std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  const absl::StatusOr<int64_t> elements = ElementCount(dims);
  if (!elements.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", elements.status().message(), "; correct the model"));
  }
  if (ByteSize(type, dims) > ValueOf(ModelLimit::kTensorBytes)) {
    return OverLimit(ModelLimit::kTensorBytes,
                     absl::StrCat(what, ": ", DataTypeName(type), " ", DimsToString(dims), " has"));
  }
  Reading r{proto, what, type, std::move(dims), *elements};
  if (proto.data_location() == TensorProto::EXTERNAL) {
    if (type == DataType::kString) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": strings cannot be external data; store them as string_data"));
    }
    if (*elements == 0) return Tensor::Zeros(type, std::move(r.dims));
    if (external_ == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": external data cannot be read here; store the elements in the file itself"));
    }
    ANEMONE_ASSIGN_OR_RETURN(ExternalData::Bytes found, external_->Find(proto, r.size(), what));
    return Tensor::View(type, std::move(r.dims), found.bytes, std::move(found.owner));
  }
  if (proto.has_segment()) return FromPayload(r, skeleton_);
  return proto.has_raw_data() ? FromRaw(r) : FromTyped(r);
}

absl::StatusOr<Tensor> TensorReader::ReadSparse(const onnx::SparseTensorProto& proto,
                                                absl::string_view what) const {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor values, Read(proto.values(), what));
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  const absl::StatusOr<int64_t> elements = ElementCount(dims);
  if (!elements.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", elements.status().message(), "; correct the model"));
  }
  const int bits = BitsOf(values.type());
  if (bits < 8) {
    return absl::UnimplementedError(
        absl::StrCat(what, ": a sparse tensor of ", DataTypeName(values.type()),
                     " is not supported, only those of types of whole bytes; store it dense"));
  }
  if (ByteSize(values.type(), dims) > ValueOf(ModelLimit::kDenseBytes)) {
    return OverLimit(ModelLimit::kDenseBytes,
                     absl::StrCat(what, ": a sparse tensor of ", DataTypeName(values.type()), " ",
                                  DimsToString(dims), " has in dense form"),
                     "store it dense");
  }
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat(what, ": the indices do not fit its dims ", DimsToString(dims), " and ",
                   values.elements(), " values; correct the model"));
  const int64_t count = values.elements();
  const auto rank = static_cast<int64_t>(dims.size());
  if (values.dims().size() != 1) return bad;
  if (count == 0) return Tensor::Zeros(values.type(), dims);
  ANEMONE_ASSIGN_OR_RETURN(const Tensor indices, Read(proto.indices(), what));
  // Each value has one linear index, or one coordinate per axis.
  const bool linear = indices.dims() == std::vector<int64_t>{count};
  if (indices.type() != DataType::kInt64) return bad;
  if (!linear && indices.dims() != std::vector<int64_t>{count, rank}) return bad;

  std::vector<int64_t> positions(count);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = linear ? indices.at<int64_t>(i) : 0;
    if (at < 0 || at >= *elements) return bad;
    for (int64_t axis = 0; !linear && axis < rank; ++axis) {
      const int64_t coordinate = indices.at<int64_t>(i * rank + axis);
      if (coordinate < 0 || coordinate >= dims[axis]) return bad;
      at = at * dims[axis] + coordinate;
    }
    positions[i] = at;
  }
  const bool rising = std::adjacent_find(positions.begin(), positions.end(),
                                         std::greater_equal<int64_t>()) == positions.end();
  if (values.type() == DataType::kFloat && *elements >= kLeastSparse && rising) {
    std::vector<float> kept(count);
    for (int64_t i = 0; i < count; ++i) kept[i] = values.at<float>(i);
    return Tensor::Of(dims, Compressed::Sparse(*elements, positions, kept));
  }
  Tensor dense = Tensor::Zeros(values.type(), dims);
  const int64_t width = bits / 8;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(dense.mutable_data<std::byte>() + positions[i] * width,
                values.bytes().data() + i * width, width);
  }
  return dense;
}

}  // namespace anemone
