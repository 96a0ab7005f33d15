#include "provider/compiled/program_file.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "provider/compiled/manifest.h"
#include "provider/package/content_hash.h"

namespace anemone {
namespace {

constexpr char kVersionSection[] = "compiled.weights";

}  // namespace

absl::StatusOr<std::string> WeightsVersionOf(const std::vector<Tensor>& sources) {
  std::vector<uint64_t> sizes;
  sizes.reserve(sources.size());
  for (const Tensor& source : sources) sizes.push_back(source.bytes().size());
  std::vector<absl::string_view> parts;
  parts.reserve(2 * sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    parts.emplace_back(reinterpret_cast<const char*>(&sizes[i]), sizeof(sizes[i]));
    parts.push_back(BytesText(sources[i]));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::string hash, HashInTime(parts));
  return absl::BytesToHexString(hash);
}

absl::StatusOr<Package> ReadProgram(const std::string& folder, const std::vector<Tensor>& sources,
                                    const std::string& version) {
  const std::string path = FileIn(folder, kProgramFile);
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MapFileIn(folder, kProgramFile));
  auto package = ReadPackage(file->text(), file, sources);
  if (!package.ok()) return Annotated(package.status(), path);
  const std::optional<Tensor> held = TakeExtension(*package, kVersionSection);
  if (!held)
    return absl::DataLossError(
        absl::StrCat(path, ": not of a compiled model; compile the model again"));
  if (BytesText(*held) != version) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": it was compiled with other weights; compile the model again"));
  }
  return package;
}

absl::Status SaveProgram(const std::string& folder, Package package, const std::string& version) {
  const auto size = static_cast<int64_t>(version.size());
  package.extensions.push_back(
      {kVersionSection, Tensor::Of<char>(DataType::kUInt8, {size}, version)});
  return SavePackage(package, FileIn(folder, kProgramFile)).status();
}

}  // namespace anemone
