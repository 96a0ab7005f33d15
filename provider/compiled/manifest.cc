#include "provider/compiled/manifest.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/real_file.h"
#include "base/status_macros.h"
#include "engine/formats/parse_json.h"
#include "engine/target.h"
#include "provider/new_file.h"
#include "provider/settings.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLargestManifest = 1 << 20;
constexpr int kSchema = 1;
constexpr char kKind[] = "compiled model";

// The settings that the plan depends on: those with a key, and the sizes.
Json PlanningJson(const Settings& settings) {
  Json json;
  for (const Setting& setting : AllSettings()) {
    if (setting.key != nullptr) json[setting.name] = setting.key(settings);
  }
  json["dims"] = settings.dims;
  json["shapes"] = settings.shapes;
  json["state"] = settings.state;
  return json;
}

absl::StatusOr<int64_t> SizeOf(const Json& json) {
  if (json.is_number_integer() && json.get<int64_t>() >= 0) return json.get<int64_t>();
  return DamagedManifest("want a size");
}

absl::StatusOr<Settings> ReadPlanning(const Json& json) {
  Settings settings;
  if (!json.is_object()) return DamagedManifest("want settings");
  for (const auto& [key, value] : json.items()) {
    if (key == "dims" || key == "shapes" || key == "state") continue;
    const Setting* setting = FindSetting(key);
    const bool is_known = setting != nullptr && setting->key != nullptr && value.is_string();
    if (!is_known || !setting->store(settings, value.get<std::string>()).ok()) {
      return DamagedManifest(absl::StrCat("a setting '", Printable(key), "'"));
    }
  }
  if (!FindTarget(settings.target).ok()) return DamagedManifest("want one target");
  for (const char* key : {"dims", "shapes", "state"}) {
    if (!json.contains(key) || !json[key].is_object())
      return DamagedManifest("want dims, shapes and state");
  }
  for (const auto& [past, present] : json["state"].items()) {
    if (!present.is_string()) return DamagedManifest("want a pair of a state");
    settings.state[past] = present.get<std::string>();
  }
  for (const auto& [name, size] : json["dims"].items()) {
    ANEMONE_ASSIGN_OR_RETURN(settings.dims[name], SizeOf(size));
  }
  for (const auto& [name, dims] : json["shapes"].items()) {
    if (!dims.is_array()) return DamagedManifest("want a shape");
    std::vector<int64_t>& shape = settings.shapes[name];
    for (const Json& size : dims) {
      ANEMONE_ASSIGN_OR_RETURN(shape.emplace_back(), SizeOf(size));
    }
  }
  return settings;
}

// What WriteManifest() writes is read by the same version, as programs are.
absl::Status CheckIsOfThisVersion(const Json& json) {
  const auto is = [&](const char* key, const Json& want) {
    return json.contains(key) && json[key] == want;
  };
  if (!is("schema", kSchema) || !is("version", kVersion)) {
    return absl::FailedPreconditionError(
        absl::StrCat(kManifestFile, ": another version of Anemone wrote it, this is ", kVersion,
                     "; compile the model again"));
  }
  return is("program", kProgramFile) ? absl::OkStatus() : DamagedManifest("another program");
}

}  // namespace

absl::Status DamagedManifest(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(kManifestFile, ": ", what, "; it is damaged, compile the model again"));
}

std::string FileIn(const std::string& folder, absl::string_view name) {
  return (fs::path(folder) / std::string(name)).string();
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MapFileIn(folder, kManifestFile));
  if (file->text().size() > kLargestManifest) return DamagedManifest("larger than 1 MiB");
  auto json = ParseJson(file->text());
  if (!json.ok() || !json->is_object() || !json->contains("kind") ||
      !IsText((*json)["kind"], kKind)) {
    return DamagedManifest("not of a compiled model");
  }
  ANEMONE_RETURN_IF_ERROR(CheckIsOfThisVersion(*json));
  for (const char* key : {"files", "settings", "weights_version"}) {
    if (!json->contains(key)) return DamagedManifest(absl::StrCat("want '", key, "'"));
  }
  const Json& files = (*json)["files"];
  const auto is_text = [](const Json& each) { return each.is_string(); };
  if (!files.is_array() || files.empty() || !std::all_of(files.begin(), files.end(), is_text) ||
      !(*json)["weights_version"].is_string()) {
    return DamagedManifest("want files and a version");
  }
  Manifest manifest{.files = files.get<std::vector<std::string>>(),
                    .weights_version = (*json)["weights_version"].get<std::string>()};
  ANEMONE_ASSIGN_OR_RETURN(manifest.settings, ReadPlanning((*json)["settings"]));
  return manifest;
}

absl::Status WriteManifest(const std::string& folder, const Manifest& manifest) {
  const Json json = {{"schema", kSchema},
                     {"kind", kKind},
                     {"version", kVersion},
                     {"program", kProgramFile},
                     {"files", manifest.files},
                     {"weights_version", manifest.weights_version},
                     {"settings", PlanningJson(manifest.settings)}};
  std::string text;
  try {
    text = json.dump(2);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(
        "a name of a file, an input or a dimension is not UTF-8, so the manifest cannot hold it; "
        "rename it");
  }
  return WriteUserFile(FileIn(folder, kManifestFile), {text, "\n"});
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MapFileIn(const std::string& folder,
                                                            absl::string_view name) {
  const fs::path written = fs::path(std::string(name)).lexically_normal();
  if (written.is_absolute() || written.empty() || *written.begin() == "..") {
    return DamagedManifest(absl::StrCat("'", Printable(name), "' leaves the folder"));
  }
  return MapFileBelow(folder, name);
}

}  // namespace anemone
