#include "provider/training/checkpoint.h"

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "provider/safetensors.h"

namespace anemone {
namespace {

constexpr uint64_t kMostHeaderBytes = 1 << 24;

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("file '", Printable(path), "': ", what,
                   "; it is not a complete checkpoint of anemone train, give another"));
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
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
  return checkpoint;
}

}  // namespace anemone
