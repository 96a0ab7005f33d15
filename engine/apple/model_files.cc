#include "engine/apple/model_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "apple_fact_table.h"  // generated
#include "base/status_macros.h"
#include "engine/apple/facts.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/netplist.h"
#include "engine/formats/netplist_folder.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace anemone::apple {
namespace {

namespace fs = std::filesystem;

// The path by which MIL texts name their weights (netplist.md), and the same in the folder.
constexpr char kMilWeightsName[] = "@model_path/weights/weight.bin";
constexpr char kMilWeightsPath[] = "weights/weight.bin";

std::string HashOf(absl::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

absl::Status AddWeights(const std::string& folder, std::string name, std::string path,
                        ModelFiles& files) {
  ModelFiles::Weights weights{.name = std::move(name), .path = std::move(path)};
  const std::string from = absl::StrCat(folder, "/", weights.path);
  std::error_code error;
  if (fs::file_size(from, error) > 0 && !error) {  // an empty file cannot be mapped
    ANEMONE_ASSIGN_OR_RETURN(weights.file, MappedFile::Open(from));
  }
  files.weights.push_back(std::move(weights));
  return absl::OkStatus();
}

std::string WeightsHash(const ModelFiles& files) {
  std::string hashes;
  for (const ModelFiles::Weights& weights : files.weights) hashes += HashOf(weights.bytes());
  return HashOf(hashes);
}

absl::StatusOr<ModelFiles> WriteAsNetplist(const Network& network, const Target& target,
                                           FormStatus least, bool judges,
                                           const std::string& folder) {
  ANEMONE_ASSIGN_OR_RETURN(const Network composed,
                           ComposeForms(network, FormStatus::kKnown, target));
  const NetworkVerdict checked = CheckNetwork(composed, target, Route::kNetplist);
  if (judges && !checked.verdict.accepted) {
    return absl::UnimplementedError(absl::StrCat(
        "the form in which it would be written is refused: ", checked.verdict.message));
  }
  ModelFiles files{.text_name = apple_fact::kNetplistFile.name};
  ANEMONE_ASSIGN_OR_RETURN(files.ports,
                           SaveNetplist(composed, least, PropertyListForm::kXml, folder));
  for (const char* name : {"weights.0", "weights.1"}) {
    ANEMONE_RETURN_IF_ERROR(AddWeights(folder, name, name, files));
  }
  ANEMONE_ASSIGN_OR_RETURN(const auto list,
                           MappedFile::Open(absl::StrCat(folder, "/", files.text_name)));
  // A comment, so that networks that differ only in their weights have different texts.
  files.text = std::string(list->text());
  const size_t at = files.text.find("<plist");
  if (at == std::string::npos) return absl::InternalError("a net.plist without <plist");
  files.weights_hash = WeightsHash(files);
  files.text.insert(at, absl::StrCat("<!-- weights ", files.weights_hash, " -->\n"));
  return files;
}

absl::StatusOr<ModelFiles> WriteAsMil(const Network& network, const Target& target,
                                      const std::string& folder) {
  if (!target.mil_route()) {
    return absl::UnimplementedError(
        absl::StrCat(target.option_name(), " does not have the MIL route"));
  }
  ModelFiles files{.is_mil = true, .text_name = apple_fact::kMilFile.name};
  const fs::path path = fs::path(folder) / kMilWeightsPath;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  ANEMONE_ASSIGN_OR_RETURN(MilText written, WriteMilProgram(network, target, file));
  file.close();
  if (!file) return NotWritten(path.string());
  ANEMONE_RETURN_IF_ERROR(AddWeights(folder, kMilWeightsName, kMilWeightsPath, files));
  files.weights_hash = WeightsHash(files);
  written.program.build_info.emplace_back("weights", files.weights_hash);
  files.text = WriteMil(written.program);
  files.ports = std::move(written.ports);
  return files;
}

absl::StatusOr<ModelFiles> WriteTo(const std::string& folder, const Network& network,
                                   const Target& target, Route route, bool judges) {
  if (route == Route::kMil) return WriteAsMil(network, target, folder);
  auto seen = WriteAsNetplist(network, target, FormStatus::kKnown, judges, folder);
  if (!absl::IsUnimplemented(seen.status())) return seen;
  auto mil = WriteAsMil(network, target, folder);
  if (!absl::IsUnimplemented(mil.status())) return mil;
  auto listed = WriteAsNetplist(network, target, FormStatus::kUnverified, judges, folder);
  if (!absl::IsUnimplemented(listed.status())) return listed;
  return absl::UnimplementedError(
      absl::StrCat("no netplist: ", listed.status().message(), "; no MIL: ", mil.status().message(),
                   "; keep the unit off the engine (--policy refuse:)"));
}

}  // namespace

absl::StatusOr<ModelFiles> WriteModelFiles(const Network& network, const Target& target,
                                           Route route, bool judges) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the folder for temporary files: ", error.message(), "; set TMPDIR to a folder"));
  }
  std::string folder = (temporary / "anemone-model.XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return NotWritten(folder);
  // Mapped files stay readable.
  const absl::Cleanup remove = [&] { fs::remove_all(folder, error); };
  ANEMONE_ASSIGN_OR_RETURN(ModelFiles files, WriteTo(folder, network, target, route, judges));
  files.key = HashOf(absl::StrCat(files.text, files.weights_hash));
  return files;
}

std::string ModelFiles::FormKey() const {
  const size_t at = text.find(weights_hash);
  std::string form = text;
  if (at != std::string::npos) form.erase(at, weights_hash.size());
  return HashOf(form);
}

void ModelFiles::MakeUnique(int number) {
  const size_t at = text.find(weights_hash);
  if (at != std::string::npos) text.insert(at + weights_hash.size(), absl::StrCat("-", number));
  key = HashOf(absl::StrCat(text, weights_hash));
}

}  // namespace anemone::apple
