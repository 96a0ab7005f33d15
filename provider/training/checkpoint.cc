#include "provider/training/checkpoint.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "provider/package/package_format.h"
#include "provider/safetensors.h"

namespace anemone {
namespace {

constexpr uint64_t kMostHeaderBytes = 1 << 24;
constexpr char kChecksum[] = "checksum";  // a text

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("file '", Printable(path), "': ", what,
                   "; it is not a complete checkpoint of anemone train, give another"));
}

// Of all names, texts and elements.
std::string ChecksumOf(const Checkpoint& checkpoint) {
  std::vector<std::string> words;
  std::vector<absl::string_view> contents;
  for (const auto& [key, text] : checkpoint.texts) {
    if (key != kChecksum)
      words.push_back(absl::StrCat(key.size(), ":", key, text.size(), ":", text));
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    words.push_back(absl::StrCat(name.size(), ":", name, DataTypeName(tensor.type()),
                                 DimsToString(tensor.dims())));
    contents.emplace_back(reinterpret_cast<const char*>(tensor.bytes().data()),
                          tensor.bytes().size());
  }
  contents.insert(contents.end(), words.begin(), words.end());
  return absl::StrCat(absl::Hex(format::Checksum(contents), absl::kZeroPad16));
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& path, Checkpoint checkpoint) {
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.is_fill() || tensor.compressed() != nullptr) tensor = tensor.Copy();
  }
  checkpoint.texts[kChecksum] = ChecksumOf(checkpoint);
  return WriteSafetensors(path, checkpoint.tensors, checkpoint.texts);
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  absl::StatusOr<Safetensors> file = ReadSafetensors(path, kMostHeaderBytes);
  if (absl::IsUnimplemented(file.status())) return Damaged(path, file.status().message());
  if (!file.ok()) return file.status();
  Checkpoint checkpoint;
  for (const auto& [key, text] : file->metadata.items()) {
    if (!text.is_string()) return Damaged(path, "has no header");
    checkpoint.texts[key] = text.get<std::string>();
  }
  for (const auto& [name, tensor] : file->tensors) {
    if (tensor.type() != DataType::kFloat && tensor.type() != DataType::kFloat16) {
      return Damaged(path, absl::StrCat("'", Printable(name), "' is damaged"));
    }
    checkpoint.tensors[name] = tensor.Copy();
  }
  if (checkpoint.texts[kChecksum] != ChecksumOf(checkpoint)) {
    return Damaged(path, "its checksum does not fit its contents");
  }
  return checkpoint;
}

}  // namespace anemone
