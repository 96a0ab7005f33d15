#include "provider/coreml/weights_file.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace anemone {
namespace {

// Equal keys: equal chunks. A compressed tensor is not expanded to be compared.
std::string KeyOf(const Tensor& tensor, absl::string_view dtype) {
  if (tensor.compressed() != nullptr) return "";
  const absl::Span<const std::byte> bytes = tensor.bytes();
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return absl::StrCat(dtype, " ", static_cast<int>(tensor.type()), " ", tensor.elements(), " ",
                      tensor.is_fill() ? "fill " : "", hash.high64, " ", hash.low64);
}

}  // namespace

WeightsFile::WeightsFile(std::string path)
    : path_(std::move(path)),
      file_(path_, std::ios::binary),
      blobs_(std::make_unique<MilBlobWriter>(file_)) {}

int64_t WeightsFile::Add(const Tensor& tensor, absl::string_view dtype) {
  const std::string key = KeyOf(tensor, dtype);
  if (auto found = offsets_.find(key); found != offsets_.end()) return found->second;
  const int64_t offset = blobs_->Add(tensor, dtype);
  ++chunks_;
  if (!key.empty()) offsets_[key] = offset;
  return offset;
}

absl::Status WeightsFile::Finish() {
  absl::Status finished = blobs_->Finish();
  if (absl::IsDataLoss(finished)) return NotWritten(path_);
  ANEMONE_RETURN_IF_ERROR(finished);
  file_.seekp(0);  // coremltools counts the chunks here (StorageFormat.hpp)
  file_.write(reinterpret_cast<const char*>(&chunks_), sizeof(chunks_));
  file_.close();
  if (!file_) return NotWritten(path_);
  std::error_code error;
  if (chunks_ == 0) std::filesystem::remove(path_, error);
  return error ? NotWritten(path_) : absl::OkStatus();
}

}  // namespace anemone
