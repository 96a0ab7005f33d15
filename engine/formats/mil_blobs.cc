#include "engine/formats/mil_blobs.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "engine/constant.h"

namespace anemone {
namespace {

constexpr int64_t kHeader = 64;  // bytes of the header of the file, and of a chunk
constexpr uint32_t kMagic = 0xDEADBEEF;

// The codes: coremltools BlobDataType.hpp.
struct BlobType {
  const char* dtype;
  uint32_t code;
  DataType type;
};
constexpr BlobType kTypes[] = {
    {"fp16", 1, DataType::kFloat16},  {"fp32", 2, DataType::kFloat},
    {"uint8", 3, DataType::kUInt8},   {"int8", 4, DataType::kInt8},
    {"uint16", 7, DataType::kUInt16}, {"int4", 8, DataType::kInt4},
    {"uint4", 11, DataType::kUInt4},  {"uint1", 9, DataType::kUInt8},
};

const BlobType* FindType(absl::string_view dtype) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const BlobType& row) { return row.dtype == dtype; });
  return found == std::end(kTypes) ? nullptr : found;
}

using Header = std::array<std::byte, kHeader>;

template <class T>
void Put(Header& header, size_t at, T value) {
  std::memcpy(header.data() + at, &value, sizeof(value));
}

template <class T>
T Get(const std::byte* at) {
  T value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace

std::optional<DataType> MilBlobType(absl::string_view dtype) {
  const BlobType* found = FindType(dtype);
  return found == nullptr ? std::nullopt : std::optional(found->type);
}

const char* MilBlobDtype(DataType type) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const BlobType& row) { return row.type == type; });
  return found == std::end(kTypes) ? nullptr : found->dtype;
}

int64_t MilBlobBytes(const Tensor& tensor, absl::string_view dtype) {
  return dtype == "fp16" ? tensor.elements() * int64_t{sizeof(math::Half)}
                         : ByteSize(tensor.type(), tensor.dims());
}

MilBlobWriter::MilBlobWriter(std::ostream& out) : out_(out) {
  Header header{};
  Put<uint32_t>(header, 0, 1);
  Put<uint32_t>(header, 4, 2);
  out_.write(reinterpret_cast<const char*>(header.data()), kHeader);
  size_ = kHeader;
}

int64_t MilBlobWriter::Add(const Tensor& tensor, absl::string_view dtype) {
  const int64_t offset = size_, data = size_ + kHeader;
  const int64_t bytes = MilBlobBytes(tensor, dtype);
  const BlobType* type = FindType(dtype);
  assert(type != nullptr);
  Header header{};
  Put(header, 0, kMagic);
  Put(header, 4, type->code);
  Put<int64_t>(header, 8, bytes);
  Put<int64_t>(header, 16, data);
  const bool is_packed = BitsOf(tensor.type()) < 8;
  if (is_packed) {
    Put<int64_t>(header, 24, bytes * 8 - tensor.elements() * BitsOf(tensor.type()));
  }
  out_.write(reinterpret_cast<const char*>(header.data()), kHeader);
  WriteData(tensor, dtype);
  const int64_t padding = (kHeader - bytes % kHeader) % kHeader;
  out_.write(reinterpret_cast<const char*>(Header{}.data()), padding);
  size_ = data + bytes + padding;
  return offset;
}

// In blocks, between which the time limit is checked.
void MilBlobWriter::WriteData(const Tensor& tensor, absl::string_view dtype) {
  constexpr int64_t kAtOnce = 1 << 16;  // elements
  const bool is_half = dtype == "fp16";
  const absl::Span<const std::byte> stored = tensor.bytes();
  const bool is_plain = !is_half && !tensor.is_fill();
  const int64_t end = is_plain ? static_cast<int64_t>(stored.size()) : tensor.elements();
  std::vector<math::Half> halves;
  for (int64_t first = 0; first < end; first += kAtOnce) {
    in_time_.Update(CheckTime(Phase::kWrite, [] { return "the weights file"; }));
    if (!in_time_.ok()) return;
    const int64_t count = std::min(kAtOnce, end - first);
    if (is_half) {
      halves.resize(count);
      ReadHalves(tensor, first, absl::MakeSpan(halves), math::NanRule::kKeep);
      out_.write(reinterpret_cast<const char*>(halves.data()),
                 static_cast<int64_t>(halves.size() * sizeof(math::Half)));
    } else if (is_plain) {
      out_.write(reinterpret_cast<const char*>(stored.data() + first), count);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        out_.write(reinterpret_cast<const char*>(stored.data()),
                   static_cast<int64_t>(stored.size()));
      }
    }
  }
}

absl::Status MilBlobWriter::Finish() {
  ANEMONE_RETURN_IF_ERROR(in_time_);
  out_.flush();
  if (out_.good()) return absl::OkStatus();
  return absl::DataLossError("weights file: could not be written; is the disk full?");
}

absl::StatusOr<absl::Span<const std::byte>> MilBlobAt(absl::Span<const std::byte> file,
                                                      int64_t offset) {
  const auto size = static_cast<int64_t>(file.size());
  if (offset < kHeader || offset > size - kHeader ||
      Get<uint32_t>(file.data() + offset) != kMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights file: there is no chunk header at offset ", offset));
  }
  const auto bytes = Get<int64_t>(file.data() + offset + 8);
  const auto data = Get<int64_t>(file.data() + offset + 16);
  if (data < 0 || bytes < 0 || data > size || bytes > size - data) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights file: the chunk at offset ", offset, " does not fit into the file"));
  }
  return file.subspan(data, bytes);
}

}  // namespace anemone
