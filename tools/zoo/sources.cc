#include "tools/zoo/sources.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/annotated.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/parse_json.h"
#include "partitioner/plan_json.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// Names of files are bytes; results and pages are UTF-8.
ZooModel ModelAt(const std::string& path) {
  const std::string text = fs::path(path).lexically_normal().string();
  const std::string replaced = JsonText(Json(text));
  const bool is_utf8 = ParseJson(replaced).value_or(Json()) == Json(text);
  return {text, is_utf8 ? text : absl::CHexEscape(text)};
}

absl::Status AddFolder(const std::string& folder, std::vector<ZooModel>& models) {
  std::error_code error;
  fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                           error);
  const size_t before = models.size();
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    // A link that leads nowhere is a model that cannot be read.
    std::error_code unknown;
    if (entries->path().extension() == ".onnx" && !entries->is_directory(unknown)) {
      models.push_back(ModelAt(entries->path().string()));
    }
  }
  if (error)
    return absl::NotFoundError(
        absl::StrCat(folder, ": ", error.message(), "; check its permissions"));
  if (models.size() > before) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat(folder, ": there is no .onnx file in it; give a folder with models"));
}

std::string FileNameOf(const std::string& path) { return fs::path(path).filename().string(); }

// Whether the text is a name of a file or folder, and not a path that leads elsewhere.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of("/\\") == std::string::npos && name.find('\0') == std::string::npos;
}

// Where models/manifest.py puts a model of a package.
std::string CachedPath(const std::string& package, const std::string& file) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string base = variable("ANEMONE_CACHE_DIR");
  if (base.empty()) {
    const std::string cache = variable("XDG_CACHE_HOME");
    base =
        absl::StrCat(cache.empty() ? absl::StrCat(variable("HOME"), "/.cache") : cache, "/anemone");
  }
  return absl::StrCat(base, "/models/", absl::StrReplaceAll(package, {{"==", "-"}}), "/",
                      FileNameOf(file));
}

// "1x3x224x224" or "scalar".
std::string ShapeText(const Json& shape) {
  std::vector<std::string> sizes;
  for (const Json& size : shape) sizes.push_back(size.dump());
  return sizes.empty() ? "scalar" : absl::StrJoin(sizes, "x");
}

void AddPairs(const Json& entry, const char* key, const char* flag,
              std::string (*text)(const Json&), std::vector<std::string>& words) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) {
    words.emplace_back(flag);
    words.push_back(absl::StrCat(name, "=", text(value)));
  }
}

absl::Status AddManifest(const std::string& path, std::vector<ZooModel>& models) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const absl::StatusOr<Json> manifest = ParseJson(file->text());
  if (!manifest.ok()) return Annotated(manifest.status(), path);
  const Json& list = AtOrNull(*manifest, "models");
  if (!list.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": want a manifest: an object with a list \"models\""));
  }
  for (const Json& entry : list) {
    if (!entry.is_object())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": a model is not an object; want {\"path\": \"net.onnx\"}"));
    const std::string own = TextAt(entry, "path");
    const std::string package = TextAt(entry, "package"), file_name = TextAt(entry, "file");
    if (own.empty() && (package.empty() || file_name.empty())) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": a model has no \"path\", and no \"package\" with \"file\"; add one"));
    }
    if (own.empty() && !(IsPlainName(package) && IsPlainName(FileNameOf(file_name)))) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": want names of a package and of a file in it, not \"", package,
                       "\" and \"", file_name, "\""));
    }
    ZooModel model = ModelAt(own.empty() ? CachedPath(package, file_name)
                                         : (fs::path(path).parent_path() / own).string());
    for (const char* key : {"dims", "shapes", "ranges"}) {
      if (entry.contains(key)) model.entry[key] = entry[key];
    }
    models.push_back(std::move(model));
  }
  return absl::OkStatus();
}

// Adds what another source says of the same model.
absl::Status Join(const ZooModel& model, ZooModel& listed) {
  if (listed.entry.empty()) listed.entry = model.entry;
  if (model.entry.empty() || model.entry == listed.entry) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      model.name, ": is listed twice, with other sizes or ranges; list it once, or in ",
      "manifests for a folder each"));
}

std::string RangeText(const Json& ends) {
  return ends.is_array() && ends.size() == 2 ? absl::StrCat(ends[0].dump(), ":", ends[1].dump())
                                             : ends.dump();
}

}  // namespace

std::vector<std::string> ZooModel::Bindings() const {
  std::vector<std::string> words;
  AddPairs(
      entry, "dims", "--dim", [](const Json& size) { return size.dump(); }, words);
  AddPairs(entry, "shapes", "--shape", ShapeText, words);
  return words;
}

std::vector<std::string> ZooModel::Ranges() const {
  std::vector<std::string> words;
  AddPairs(entry, "ranges", "--range", RangeText, words);
  return words;
}

absl::StatusOr<std::vector<ZooModel>> FindModels(const std::vector<std::string>& sources) {
  std::vector<ZooModel> models;
  for (const std::string& source : sources) {
    std::error_code error;
    const fs::file_status status = fs::status(source, error);
    if (!fs::exists(status))
      return absl::NotFoundError(absl::StrCat(source, ": no such file or folder; check the path"));
    if (fs::is_directory(status)) {
      ANEMONE_RETURN_IF_ERROR(AddFolder(source, models));
    } else if (absl::EndsWith(source, ".json")) {
      ANEMONE_RETURN_IF_ERROR(AddManifest(source, models));
    } else {
      models.push_back(ModelAt(source));
    }
  }
  const auto before = [](const ZooModel& a, const ZooModel& b) { return a.path < b.path; };
  std::stable_sort(models.begin(), models.end(), before);
  std::vector<ZooModel> listed;
  for (ZooModel& model : models) {
    if (listed.empty() || listed.back().path != model.path) {
      listed.push_back(std::move(model));
      continue;
    }
    ANEMONE_RETURN_IF_ERROR(Join(model, listed.back()));
  }
  return listed;
}

}  // namespace anemone
