// engine/formats/json_keys.h: reading keys of a document that somebody else wrote. Errors are
// kInvalidArgument and name the key; pointers are into the document.
#ifndef ANEMONE_ENGINE_FORMATS_JSON_KEYS_H_
#define ANEMONE_ENGINE_FORMATS_JSON_KEYS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

// "network: want <what>".
absl::Status Wanted(absl::string_view what);

// "want <want>, got <from>", whatever bytes are in its texts.
absl::Status Unwanted(absl::string_view want, const Json& from);

// The array at `key`; empty if there is none.
absl::StatusOr<const Json*> ArrayAt(const Json& json, const char* key);

// The object at `key`.
absl::StatusOr<const Json*> ObjectAt(const Json& json, const std::string& key);

// The value at `key`, of T's type.
template <class T>
absl::StatusOr<T> ValueAt(const Json& json, const char* key) {
  T value{};
  if (!json.is_object() || !json.contains(key)) {
    return Wanted("a key '" + std::string(key) + "'");
  }
  absl::Status status = Plain::Read(json[key], value);
  if (!status.ok())
    return Wanted("at '" + std::string(key) + "': " + std::string(status.message()));
  return value;
}

// The same, if there is such a key; else `to` stays as it is.
template <class T>
absl::Status ReadIfThere(const Json& json, const char* key, T& to) {
  auto found = json.find(key);
  if (found == json.end()) return absl::OkStatus();
  absl::Status status = Plain::Read(*found, to);
  if (status.ok()) return status;
  return absl::Status(status.code(), std::string(key) + ": " + std::string(status.message()));
}

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_JSON_KEYS_H_
