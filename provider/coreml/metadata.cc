#include "provider/coreml/metadata.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mapped_file.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/field.h"
#include "importer/read/skeleton.h"

namespace anemone {
namespace {

constexpr char kOwnKeys[] = "anemone.";

// Core ML has fields of its own for four keys, which may be written in any case.
std::string FieldOf(const std::string& key) {
  std::string name = absl::AsciiStrToLower(key);
  const bool is_field =
      name == "author" || name == "version" || name == "license" || name == "description";
  return is_field ? name : key;
}

using Entries = std::map<std::string, std::string>;

absl::StatusOr<Entries> ReadEntries(const char* option, const std::vector<std::string>& given) {
  Entries entries;
  for (const std::string& text : given) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0) {
      return UsageError(absl::StrCat(option, " ", text, ": want NAME=TEXT"));
    }
    if (entries.emplace(text.substr(0, at), Utf8Text(text.substr(at + 1))).second) continue;
    return UsageError(
        absl::StrCat(option, " ", text, ": '", text.substr(0, at), "' is given twice"));
  }
  return entries;
}

absl::StatusOr<Entries> ReadMetadata(const std::vector<std::string>& given) {
  constexpr char kOption[] = "--metadata";
  ANEMONE_ASSIGN_OR_RETURN(Entries entries, ReadEntries(kOption, given));
  std::set<std::string> fields;
  for (const auto& [key, text] : entries) {
    if (!fields.insert(FieldOf(key)).second) {
      return UsageError(absl::StrCat(kOption, " ", key, ": '", FieldOf(key), "' is given twice"));
    }
    if (!absl::StartsWith(key, kOwnKeys)) continue;
    return UsageError(absl::StrCat(kOption, " ", key, ": the keys that begin with '", kOwnKeys,
                                   "' are Anemone's"));
  }
  return entries;
}

void Put(const std::string& key, std::string value, ModelText& text) {
  const std::string name = FieldOf(key);
  if (name == "author") {
    text.author = std::move(value);
  } else if (name == "version") {
    text.version = std::move(value);
  } else if (name == "license") {
    text.license = std::move(value);
  } else if (name == "description") {
    text.description = std::move(value);
  } else if (!absl::StartsWith(key, kOwnKeys)) {
    text.other[key] = std::move(value);
  }
}

}  // namespace

std::string Utf8Text(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

absl::StatusOr<ModelText> ModelText::Of(const std::string& path,
                                        const std::vector<std::string>& metadata,
                                        const std::vector<std::string>& descriptions) {
  ANEMONE_ASSIGN_OR_RETURN(const Entries given, ReadMetadata(metadata));
  ANEMONE_ASSIGN_OR_RETURN(const Entries described, ReadEntries("--describe", descriptions));
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  ANEMONE_ASSIGN_OR_RETURN(const auto skeleton, MakeSkeleton(file->text(), file));
  const onnx::ModelProto& model = skeleton->proto;
  ModelText text;
  if (model.model_version() != 0) text.version = absl::StrCat(model.model_version());
  text.description =
      Utf8Text(model.doc_string().empty() ? model.graph().doc_string() : model.doc_string());
  for (const auto& entry : model.metadata_props())
    Put(Utf8Text(entry.key()), Utf8Text(entry.value()), text);
  std::vector<std::string> names;
  for (const auto* ports : {&model.graph().input(), &model.graph().output()}) {
    for (const auto& port : *ports) {
      names.push_back(port.name());
      if (!port.doc_string().empty()) text.ports[port.name()] = Utf8Text(port.doc_string());
    }
  }
  for (const auto& [key, value] : given) Put(key, value, text);
  for (const auto& [port, value] : described) {
    if (std::find(names.begin(), names.end(), port) == names.end()) {
      return UsageError(absl::StrCat("--describe ", port, ": the model has no input or output of ",
                                     "that name; it has ", NearText(port, names)));
    }
    text.ports[port] = value;
  }
  return text;
}

absl::Status CheckMetadata(const std::vector<std::string>& metadata,
                           const std::vector<std::string>& descriptions) {
  ANEMONE_RETURN_IF_ERROR(ReadMetadata(metadata).status());
  return ReadEntries("--describe", descriptions).status();
}

}  // namespace anemone
