#include "engine/formats/json_keys.h"

#include "absl/strings/str_cat.h"

namespace anemone {

absl::Status Wanted(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("network: want ", what));
}

absl::Status Unwanted(absl::string_view want, const Json& from) {
  return absl::InvalidArgumentError(
      absl::StrCat("want ", want, ", got ",
                   from.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)));
}

absl::StatusOr<const Json*> ArrayAt(const Json& json, const char* key) {
  if (!json.is_object()) return Wanted("objects");
  auto found = json.find(key);
  static const Json& none = *new Json(Json::array());
  if (found == json.end()) return &none;
  if (!found->is_array()) return Wanted(absl::StrCat("an array at '", key, "'"));
  return &*found;
}

absl::StatusOr<const Json*> ObjectAt(const Json& json, const std::string& key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_object()) {
    return Wanted(absl::StrCat("a dictionary at '", key, "'"));
  }
  return &json[key];
}

const Json& AtOrNull(const Json& json, const char* key) {
  static const Json& null = *new Json;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return found == json.end() ? null : *found;
}

std::string TextAt(const Json& json, const char* key) {
  const Json& value = AtOrNull(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace anemone
