// engine/formats/mil_blob_files.h: the weights files of a MIL program that was read from a folder.
//
//   MilBlobFiles files("net.ane/segment-0");
//   ANEMONE_ASSIGN_OR_RETURN(const MilChunk chunk, files.Read({"@model_path/weights/weight.bin",
//   64}));
#ifndef ANEMONE_ENGINE_FORMATS_MIL_BLOB_FILES_H_
#define ANEMONE_ENGINE_FORMATS_MIL_BLOB_FILES_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mapped_file.h"
#include "engine/formats/mil_program.h"

namespace anemone {

// The data of a chunk (mil_blobs.h), as a view of the file, which keeps it alive.
struct MilChunk {
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> file;
};

class MilBlobFiles {
 public:
  explicit MilBlobFiles(std::string folder) : folder_(std::move(folder)) {}

  // Maps the file when it is first used. kInvalidArgument: the path is not one below @model_path/,
  // or there is no chunk. Other errors: those of MappedFile::Open.
  absl::StatusOr<MilChunk> Read(const MilBlob& blob);

 private:
  absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_BLOB_FILES_H_
