// engine/formats/json_keys.h: reads keys of a document that may be invalid. Errors are
// kInvalidArgument and name the key. Returned pointers point into the document.
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

// "want <want>, got <from>". `from` may contain invalid UTF-8.
absl::Status Unwanted(absl::string_view want, const Json& from);

// The array at `key`; an empty array if the key is missing.
absl::StatusOr<const Json*> ArrayAt(const Json& json, const char* key);

// The object at `key`.
absl::StatusOr<const Json*> ObjectAt(const Json& json, const std::string& key);

// The value at `key`, which must be of type T.
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

// Reads the value at `key` into `to`, if the key is present.
template <class T>
absl::Status ReadIfThere(const Json& json, const char* key, T& to) {
  auto found = json.find(key);
  if (found == json.end()) return absl::OkStatus();
  absl::Status status = Plain::Read(*found, to);
  if (status.ok()) return status;
  return absl::Status(status.code(), std::string(key) + ": " + std::string(status.message()));
}

// The value at `key`, or null.
const Json& AtOrNull(const Json& json, const char* key);

// The text at `key`; "" if there is none.
std::string TextAt(const Json& json, const char* key);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_JSON_KEYS_H_
