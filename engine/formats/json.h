// engine/formats/json.h: the JSON type. Its templates are instantiated once, in json.cc: they would
// take half of the compile time of every file that uses them.
#ifndef ANEMONE_ENGINE_FORMATS_JSON_H_
#define ANEMONE_ENGINE_FORMATS_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace anemone {

// Objects keep the order of their keys.
using Json = nlohmann::ordered_json;

// Whether `json` is this text. `json == text` copies the text in a function that must not throw, so
// that the process ends if there is no memory for the copy.
inline bool IsText(const Json& json, absl::string_view text) {
  return json.is_string() && json.get_ref<const std::string&>() == text;
}

}  // namespace anemone

// json.cc has the same list of instantiations.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

#endif  // ANEMONE_ENGINE_FORMATS_JSON_H_
