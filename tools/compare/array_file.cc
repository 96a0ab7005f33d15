#include "tools/compare/array_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "importer/read/tensor_reader.h"
#include "onnx/onnx_pb.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr size_t kMostHeaderBytes = 1 << 17;  // headers of version 1 have at most 65535 bytes
constexpr uint64_t kWhole = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMostProtoBytes = std::numeric_limits<int32_t>::max();

struct NpyType {
  const char* name;  // without the byte order
  DataType type;
};
constexpr NpyType kTypes[] = {
    {"f4", DataType::kFloat},     {"f2", DataType::kFloat16},    {"f8", DataType::kDouble},
    {"i1", DataType::kInt8},      {"u1", DataType::kUInt8},      {"i2", DataType::kInt16},
    {"u2", DataType::kUInt16},    {"i4", DataType::kInt32},      {"u4", DataType::kUInt32},
    {"i8", DataType::kInt64},     {"u8", DataType::kUInt64},     {"b1", DataType::kBool},
    {"c8", DataType::kComplex64}, {"c16", DataType::kComplex128}};

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::DataLossError(
      absl::StrCat("file '", path, "': ", what, "; write it again with numpy.save"));
}

// The first `most` bytes of the file.
absl::StatusOr<std::string> ReadBytes(const std::string& path, uint64_t most = kWhole) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::directory) {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", path, "': is a folder, not a file; give a .npy or .pb file"));
  }
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::block) {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", path, "': is a device, not a file; give a .npy or .pb file"));
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return absl::NotFoundError(
        absl::StrCat("file '", path, "': cannot be read; check the path and its permissions"));
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error) {  // a pipe, which is read to its end
    return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  std::string bytes(std::min(most, size), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(in.gcount());
  return bytes;
}

// The text after "'key':" in a .npy header, up to the end of its value.
absl::StatusOr<std::string> HeaderValue(const std::string& path, const std::string& header,
                                        const char* key, const char* end) {
  size_t at = header.find(absl::StrCat("'", key, "':"));
  if (at == std::string::npos) return Damaged(path, absl::StrCat("header without '", key, "'"));
  at += std::strlen(key) + 3;
  size_t stop = header.find_first_of(end, at);
  if (stop == std::string::npos) return Damaged(path, "header is truncated");
  return std::string(absl::StripAsciiWhitespace(header.substr(at, stop - at)));
}

absl::StatusOr<DataType> TypeOfDescr(const std::string& path, std::string descr) {
  if (descr.size() >= 2 && descr.front() == '\'') descr = descr.substr(1, descr.size() - 2);
  bool little = !descr.empty() && (descr[0] == '<' || descr[0] == '|' || descr[0] == '=');
  for (const NpyType& t : kTypes) {
    if (little && descr.substr(1) == t.name) return t.type;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "file '", path, "': type '", descr,
      "' is not supported; convert it to a little-endian number type with numpy's astype"));
}

// A parsed header of a .npy file, and where its data starts.
struct NpyHeader {
  ArrayHeader array;
  size_t start = 0;
};

// `bytes` are the first ones of the file, which has `file_bytes`.
absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& path, absl::string_view bytes,
                                         uint64_t file_bytes) {
  if (bytes.size() < kMagicSize + 4 ||
      bytes.substr(0, kMagicSize) != absl::string_view(kMagic, kMagicSize)) {
    return Damaged(path, "is not a .npy file");
  }
  size_t size_bytes = bytes[kMagicSize] == 1 ? 2 : 4;
  size_t start = kMagicSize + 2 + size_bytes;
  if (bytes.size() < start) return Damaged(path, "ends within its header");
  uint32_t header_size = 0;
  std::memcpy(&header_size, bytes.data() + kMagicSize + 2, size_bytes);
  if (header_size > bytes.size() - start) return Damaged(path, "ends within its header");
  const std::string header(bytes.substr(start, header_size));
  ANEMONE_ASSIGN_OR_RETURN(std::string descr, HeaderValue(path, header, "descr", ",}"));
  ANEMONE_ASSIGN_OR_RETURN(DataType type, TypeOfDescr(path, descr));
  ANEMONE_ASSIGN_OR_RETURN(std::string fortran, HeaderValue(path, header, "fortran_order", ",}"));
  if (fortran != "False") {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", path, "': is in Fortran order; save numpy.ascontiguousarray of it"));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::string shape, HeaderValue(path, header, "shape", ")"));
  std::vector<int64_t> dims;
  for (absl::string_view part : absl::StrSplit(absl::StripPrefix(shape, "("), ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    dims.push_back(0);
    if (!absl::SimpleAtoi(part, &dims.back()) || dims.back() < 0) {
      return Damaged(path, absl::StrCat("shape '", shape, "' is not valid"));
    }
  }
  auto count = ElementCount(dims);
  const uint64_t data_bytes = file_bytes - start - header_size;
  if (!count.ok() || ByteSize(type, dims) != static_cast<int64_t>(data_bytes)) {
    return Damaged(path, absl::StrCat("has ", data_bytes,
                                      " bytes of data, which does not "
                                      "match its shape ",
                                      shape, ")"));
  }
  return NpyHeader{{type, std::move(dims)}, start + header_size};
}

absl::StatusOr<onnx::TensorProto> ReadProto(const std::string& path) {
  if (!absl::EndsWith(path, ".pb")) {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", path, "': want a name that ends in .npy or .pb"));
  }
  std::error_code error;
  if (std::filesystem::file_size(path, error) > kMostProtoBytes && !error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file '", path, "': has more than 2 GiB, the most that Protobuf reads; give a .npy file"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(
        "file '", path, "': is not an onnx.TensorProto; write it with onnx.numpy_helper"));
  }
  return proto;
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(const std::string& path, absl::string_view bytes) {
  ANEMONE_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(path, bytes, bytes.size()));
  Tensor tensor = Tensor::Zeros(header.array.type, std::move(header.array.dims));
  if (tensor.elements() > 0) {
    std::memcpy(tensor.mutable_data<char>(), bytes.data() + header.start,
                bytes.size() - header.start);
  }
  return tensor;
}

absl::StatusOr<ArrayHeader> ReadArrayHeader(const std::string& path) {
  if (absl::EndsWith(path, ".npy")) {
    ANEMONE_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(path, kMostHeaderBytes));
    std::error_code error;
    const uint64_t file_bytes = std::filesystem::file_size(path, error);
    ANEMONE_ASSIGN_OR_RETURN(NpyHeader header,
                             ParseNpyHeader(path, bytes, error ? bytes.size() : file_bytes));
    return std::move(header.array);
  }
  ANEMONE_ASSIGN_OR_RETURN(const onnx::TensorProto proto, ReadProto(path));
  ANEMONE_ASSIGN_OR_RETURN(const DataType type,
                           ReadDataType(proto.data_type(), absl::StrCat("file '", path, "'")));
  return ArrayHeader{type, {proto.dims().begin(), proto.dims().end()}};
}

absl::StatusOr<Tensor> ReadArrayFile(const std::string& path) {
  if (absl::EndsWith(path, ".npy")) {
    ANEMONE_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(path));
    return ParseNpy(path, bytes);
  }
  ANEMONE_ASSIGN_OR_RETURN(const onnx::TensorProto proto, ReadProto(path));
  ANEMONE_ASSIGN_OR_RETURN(
      Tensor view, TensorReader(nullptr, nullptr).Read(proto, absl::StrCat("file '", path, "'")));
  if (view.type() == DataType::kString || view.is_fill()) return view;
  Tensor owned = Tensor::Zeros(view.type(), view.dims());  // the view ends with the proto
  if (!view.bytes().empty()) {
    std::memcpy(owned.mutable_data<char>(), view.bytes().data(), view.bytes().size());
  }
  return owned;
}

absl::StatusOr<std::string> NpyTypeOf(DataType type) {
  for (const NpyType& t : kTypes) {
    if (t.type == type) return std::string(t.name);
  }
  return absl::UnimplementedError(absl::StrCat("NumPy has no type for ", DataTypeName(type),
                                               "; let the model cast it to float32"));
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  ANEMONE_ASSIGN_OR_RETURN(std::string name, NpyTypeOf(tensor.type()));
  std::string shape;
  for (int64_t d : tensor.dims()) absl::StrAppend(&shape, d, ", ");
  bool one_byte = BitsOf(tensor.type()) == 8;
  std::string header = absl::StrCat("{'descr': '", one_byte ? "|" : "<", name,
                                    "', 'fortran_order': False, 'shape': (", shape, "), }");
  size_t start = kMagicSize + 4;
  header.append(63 - (start + header.size()) % 64, ' ');  // data starts at a multiple of 64
  header += '\n';
  std::string head(kMagic, kMagicSize);
  head +=
      {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  head += header;
  absl::Span<const std::byte> bytes = tensor.bytes();
  std::vector<std::byte> repeated;
  if (tensor.is_fill()) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      repeated.insert(repeated.end(), bytes.begin(), bytes.end());
    }
    bytes = repeated;
  }
  return WriteUserFile(path, {head, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
}

}  // namespace anemone
