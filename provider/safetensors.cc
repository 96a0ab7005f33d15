#include "provider/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/parse_json.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

constexpr char kMetadata[] = "__metadata__";

struct TypeName {
  absl::string_view name;
  DataType type;
};
constexpr TypeName kTypes[] = {
    {"F64", DataType::kDouble},
    {"F32", DataType::kFloat},
    {"F16", DataType::kFloat16},
    {"BF16", DataType::kBFloat16},
    {"F8_E4M3", DataType::kFloat8E4M3FN},
    {"F8_E5M2", DataType::kFloat8E5M2},
    {"I64", DataType::kInt64},
    {"I32", DataType::kInt32},
    {"I16", DataType::kInt16},
    {"I8", DataType::kInt8},
    {"U64", DataType::kUInt64},
    {"U32", DataType::kUInt32},
    {"U16", DataType::kUInt16},
    {"U8", DataType::kUInt8},
    {"BOOL", DataType::kBool},
};

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(
      absl::StrCat(what, "; the file is damaged or not a .safetensors file, write it again"));
}

// The members of the header's object as texts, in order: parsing them one by one bounds the depth
// and the keys of each, but not the number of tensors.
class Members {
 public:
  explicit Members(absl::string_view text) : text_(text) {}

  bool Begin() { return Take('{'); }
  bool AtEnd() {
    Skip();
    return at_ < text_.size() && text_[at_] == '}';
  }
  bool Comma() { return Take(','); }
  // Only spaces may follow the object.
  bool End() {
    if (!Take('}')) return false;
    Skip();
    return at_ == text_.size();
  }

  // `"name": {...}`, as the JSON of an object with this one member.
  absl::StatusOr<Json> Next() {
    Skip();
    const size_t begin = at_;
    if (!String() || !Take(':')) return Damaged("the header has a member without a name");
    Skip();
    if (at_ >= text_.size() || text_[at_] != '{') {
      return Damaged("the header has a member that is not an object");
    }
    int depth = 0;
    do {
      if (at_ >= text_.size()) return Damaged("the header ends inside an object");
      const char c = text_[at_];
      if (c == '"') {
        if (!String()) return Damaged("the header ends inside a text");
        continue;
      }
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      ++at_;
    } while (depth > 0);
    auto parsed = ParseJson(absl::StrCat("{", text_.substr(begin, at_ - begin), "}"));
    if (!parsed.ok() || parsed->size() != 1) return Damaged("the header is not JSON");
    return parsed;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool String() {
    if (!Take('"')) return false;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }

  absl::string_view text_;
  size_t at_ = 0;
};

std::optional<std::vector<int64_t>> NumbersAt(const Json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_array()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Json& number : object[key]) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > uint64_t{INT64_MAX}) {
      return std::nullopt;
    }
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

absl::StatusOr<Tensor> ReadTensor(const Json& about, absl::string_view data,
                                  const std::shared_ptr<const void>& owner,
                                  std::pair<int64_t, int64_t>& range) {
  const auto dims = NumbersAt(about, "shape"), offsets = NumbersAt(about, "data_offsets");
  if (!dims || !offsets || offsets->size() != 2 || !about.contains("dtype") ||
      !about["dtype"].is_string()) {
    return Damaged("want dtype, shape and data_offsets");
  }
  const auto named = about["dtype"].get<std::string>();
  const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const TypeName& t) { return t.name == named; });
  if (type == std::end(kTypes)) {
    return absl::UnimplementedError(
        absl::StrCat("ONNX has no type ", Printable(named), "; convert the tensor"));
  }
  range = {(*offsets)[0], (*offsets)[1]};
  if (range.first > range.second || range.second > static_cast<int64_t>(data.size())) {
    return Damaged("its elements are outside of the file");
  }
  const auto count = ElementCount(*dims);
  if (!count.ok() || ByteSize(type->type, *dims) != range.second - range.first) {
    return Damaged("its shape does not fit its bytes");
  }
  const absl::string_view bytes = data.substr(range.first, range.second - range.first);
  return Tensor::View(type->type, *dims,
                      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, owner);
}

absl::StatusOr<Safetensors> Parse(absl::string_view bytes, std::shared_ptr<const void> owner,
                                  uint64_t most_header) {
  uint64_t size = 0;
  if (bytes.size() < sizeof(size)) return Damaged("it is shorter than 8 bytes");
  std::memcpy(&size, bytes.data(), sizeof(size));
  if (size > most_header || size > bytes.size() - sizeof(size)) {
    return Damaged(absl::StrCat("a header of ", size, " bytes in a file of ", bytes.size()));
  }
  const absl::string_view data = bytes.substr(sizeof(size) + size);
  Members members(bytes.substr(sizeof(size), size));
  if (!members.Begin()) return Damaged("the header is not a JSON object");
  Safetensors file;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (bool first = true; !members.AtEnd(); first = false) {
    if (!first && !members.Comma()) return Damaged("the header is not JSON");
    ANEMONE_ASSIGN_OR_RETURN(const Json member, members.Next());
    const std::string name = member.begin().key();
    if (name == kMetadata) {
      file.metadata = member.begin().value();
      continue;
    }
    auto tensor = ReadTensor(member.begin().value(), data, owner, ranges.emplace_back());
    if (!tensor.ok()) {
      return Annotated(tensor.status(), absl::StrCat("tensor '", Printable(name), "'"));
    }
    if (!file.tensors.emplace(name, *std::move(tensor)).second) {
      return Damaged(absl::StrCat("tensor '", Printable(name), "' is there twice"));
    }
  }
  if (!members.End()) return Damaged("the header does not end with its object");
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return Damaged("two tensors share bytes");
  }
  return file;
}

}  // namespace

absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path, uint64_t most_header) {
  ANEMONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  auto read = Parse(file->text(), file, most_header);
  return read.ok() ? std::move(read) : Annotated(read.status(), path);
}

absl::Status WriteSafetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  Json header = {{kMetadata, metadata}};
  uint64_t at = 0;
  std::vector<Tensor> written;
  written.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto* type =
        std::find_if(std::begin(kTypes), std::end(kTypes),
                     [wanted = tensor.type()](const TypeName& t) { return t.type == wanted; });
    if (type == std::end(kTypes)) {
      return absl::UnimplementedError(absl::StrCat("tensor '", Printable(name),
                                                   "': the format has ", "no type ",
                                                   DataTypeName(tensor.type())));
    }
    written.push_back(tensor.is_fill() || tensor.compressed() != nullptr ? tensor.Copy() : tensor);
    const uint64_t size = written.back().bytes().size();
    header[name] = {{"dtype", std::string(type->name)},
                    {"shape", tensor.dims()},
                    {"data_offsets", {at, at + size}}};
    at += size;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the name of a tensor is not UTF-8, so the format cannot hold it"));
  }
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

}  // namespace anemone
