#include "provider/training/checkpoint.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

constexpr char kTexts[] = "__metadata__";
constexpr uint64_t kMostHeaderBytes = 1 << 24;

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat("file '", Printable(path), "': ", what,
                                          "; it is not a complete checkpoint of anemone train"));
}

const char* NameOf(DataType type) { return type == DataType::kFloat16 ? "F16" : "F32"; }

// One entry of the header: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}.
absl::StatusOr<Tensor> ReadTensor(const std::string& path, const std::string& name,
                                  const nlohmann::json& entry, absl::Span<const std::byte> data) {
  const auto bad = [&] {
    return Damaged(path, absl::StrCat("'", Printable(name), "' is damaged"));
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    return bad();
  }
  const nlohmann::json &shape = entry["shape"], &offsets = entry["data_offsets"];
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2) return bad();
  std::vector<int64_t> dims;
  for (const nlohmann::json& size : shape) {
    if (!size.is_number_unsigned()) return bad();
    dims.push_back(size.get<int64_t>());
  }
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) return bad();
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  const DataType type = entry["dtype"] == "F16"   ? DataType::kFloat16
                        : entry["dtype"] == "F32" ? DataType::kFloat
                                                  : DataType::kUndefined;
  if (type == DataType::kUndefined || !ElementCount(dims).ok() || begin > end ||
      end > data.size() || ByteSize(type, dims) != static_cast<int64_t>(end - begin)) {
    return bad();
  }
  Tensor tensor = Tensor::Uninitialized(type, std::move(dims));
  if (end > begin) std::memcpy(tensor.mutable_data<std::byte>(), data.data() + begin, end - begin);
  return tensor;
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  Json header = {{kTexts, checkpoint.texts}};
  uint64_t at = 0;
  std::vector<Tensor> written;
  written.reserve(checkpoint.tensors.size());
  for (const auto& [name, tensor] : checkpoint.tensors) {
    written.push_back(tensor.is_fill() || tensor.compressed() != nullptr ? tensor.Copy() : tensor);
    const uint64_t size = written.back().bytes().size();
    header[name] = {{"dtype", NameOf(tensor.type())},
                    {"shape", tensor.dims()},
                    {"data_offsets", {at, at + size}}};
    at += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(path));
  ANEMONE_RETURN_IF_ERROR(file->Write({reinterpret_cast<const char*>(&length), sizeof(length)}));
  ANEMONE_RETURN_IF_ERROR(file->Write(text));
  for (const Tensor& tensor : written) {
    const absl::Span<const std::byte> bytes = tensor.bytes();
    ANEMONE_RETURN_IF_ERROR(
        file->Write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return file->PutIntoPlace();
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const absl::string_view text = file->text();
  uint64_t length = 0;
  if (text.size() < sizeof(length)) return Damaged(path, "is too short");
  std::memcpy(&length, text.data(), sizeof(length));
  if (length > kMostHeaderBytes || length > text.size() - sizeof(length)) {
    return Damaged(path, "ends within its header");
  }
  // Not Json, which looks through the keys of an object in order: there may be many.
  const auto header = nlohmann::json::parse(text.substr(sizeof(length), length), nullptr,
                                            /*allow_exceptions=*/false);
  if (!header.is_object()) return Damaged(path, "has no header");
  const absl::string_view elements = text.substr(sizeof(length) + length);
  const absl::Span<const std::byte> data(reinterpret_cast<const std::byte*>(elements.data()),
                                         elements.size());
  Checkpoint checkpoint;
  for (const auto& [name, entry] : header.items()) {
    if (name == kTexts) {
      if (!entry.is_object()) return Damaged(path, "has no header");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Damaged(path, "has no header");
        checkpoint.texts[key] = value.get<std::string>();
      }
      continue;
    }
    ANEMONE_ASSIGN_OR_RETURN(checkpoint.tensors[name], ReadTensor(path, name, entry, data));
  }
  return checkpoint;
}

}  // namespace anemone
