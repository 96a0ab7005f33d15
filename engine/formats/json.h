// engine/formats/json.h: the JSON type. Its templates are instantiated once, in json.cc: they would
// take half of the compile time of every file that uses them.
#ifndef ANEMONE_ENGINE_FORMATS_JSON_H_
#define ANEMONE_ENGINE_FORMATS_JSON_H_

#include "nlohmann/json.hpp"

namespace anemone {

// Objects keep the order of their keys.
using Json = nlohmann::ordered_json;

}  // namespace anemone

// json.cc has the same list of instantiations.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

#endif  // ANEMONE_ENGINE_FORMATS_JSON_H_
