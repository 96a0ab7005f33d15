#include "engine/formats/mil_blob_files.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/real_file.h"
#include "base/status_macros.h"
#include "engine/formats/mil_blobs.h"

namespace anemone {

absl::StatusOr<MilChunk> MilBlobFiles::Read(const MilBlob& blob) {
  MilChunk chunk;
  ANEMONE_ASSIGN_OR_RETURN(chunk.file, Open(blob.path));
  ANEMONE_ASSIGN_OR_RETURN(chunk.bytes, MilBlobAt(chunk.file->bytes(), blob.offset));
  return chunk;
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MilBlobFiles::Open(const std::string& path) {
  std::shared_ptr<const MappedFile>& file = files_[path];
  if (file != nullptr) return file;
  absl::string_view inside = path;
  if (!absl::ConsumePrefix(&inside, "@model_path/") || inside.empty() || inside[0] == '/' ||
      absl::StrContains(inside, "..")) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights: want a file below @model_path/, not '", path, "'"));
  }
  ANEMONE_ASSIGN_OR_RETURN(file, MapFileBelow(folder_, inside));
  return file;
}

}  // namespace anemone
