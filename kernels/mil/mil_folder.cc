#include "kernels/mil/mil_folder.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/mil_blob_files.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/mil/mil_network.h"

namespace anemone {
namespace {

constexpr size_t kLongestText = size_t{1} << 28;  // bytes of a model.mil

absl::StatusOr<Tensor> TensorOf(const MilChunk& chunk, int64_t offset, DataType type,
                                std::vector<int64_t> dims) {
  ANEMONE_RETURN_IF_ERROR(ElementCount(dims).status());
  const int64_t want = ByteSize(type, dims), there = static_cast<int64_t>(chunk.bytes.size());
  if (want != there) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights: want ", want, " bytes at offset ", offset, ", which has ", there));
  }
  return Tensor::View(type, std::move(dims), chunk.bytes, chunk.file);
}

absl::Status Load(const std::string& folder, NetworkBuilder& c) {
  ANEMONE_ASSIGN_OR_RETURN(auto text, MappedFile::Open(absl::StrCat(folder, "/model.mil")));
  if (text->bytes().size() > kLongestText) {
    return absl::InvalidArgumentError("model.mil: want at most 256 MiB");
  }
  ANEMONE_ASSIGN_OR_RETURN(MilProgram program, ReadMil(text->text()));
  MilBlobFiles files(folder);
  auto source = [&](const MilBlob& blob, DataType type,
                    std::vector<int64_t> dims) -> absl::StatusOr<Tensor> {
    ANEMONE_ASSIGN_OR_RETURN(const MilChunk chunk, files.Read(blob));
    return TensorOf(chunk, blob.offset, type, std::move(dims));
  };
  return ReadMilProgram(program, source, c);
}

}  // namespace

absl::StatusOr<PortNames> SaveMil(const Network& network, const Target& target,
                                  const std::string& folder) {
  const std::string weights = absl::StrCat(folder, "/weights"), path = weights + "/weight.bin";
  std::error_code error;
  std::filesystem::create_directory(weights, error);
  if (error) return NotWritten(weights);
  std::ofstream file(path, std::ios::binary);
  absl::StatusOr<MilText> made = WriteMilProgram(network, target, file);
  if (absl::IsDataLoss(made.status())) return NotWritten(path);
  ANEMONE_ASSIGN_OR_RETURN(MilText written, std::move(made));
  file.close();
  if (!file) return NotWritten(path);
  const std::string program = absl::StrCat(folder, "/model.mil");
  std::ofstream text(program, std::ios::binary);
  text << WriteMil(written.program);
  text.close();
  if (!text) return NotWritten(program);
  return std::move(written.ports);
}

absl::Status LoadMil(const std::string& folder, NetworkBuilder& c) {
  absl::Status status = Load(folder, c);
  if (status.ok() || c.refusal()) return status;
  return absl::Status(status.code(), absl::StrCat("MIL '", folder, "': ", status.message()));
}

}  // namespace anemone
