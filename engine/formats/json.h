// engine/formats/json.h: the JSON type. Its templates are instantiated once, in json.cc: they would
// take half of the compile time of every file that uses them.
#ifndef ANEMONE_ENGINE_FORMATS_JSON_H_
#define ANEMONE_ENGINE_FORMATS_JSON_H_

#include <string>

#include "nlohmann/json.hpp"

namespace anemone {

// Objects keep the order of their keys.
using Json = nlohmann::ordered_json;

namespace json_detail {
using Text = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using Literal = nlohmann::detail::iterator_input_adapter<const char*>;
}  // namespace json_detail

}  // namespace anemone

// json.cc has the same list of instantiations.
extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::serializer<anemone::Json>;
extern template class nlohmann::detail::lexer<nlohmann::json, anemone::json_detail::Text>;
extern template class nlohmann::detail::lexer<nlohmann::json, anemone::json_detail::Literal>;
extern template class nlohmann::detail::lexer<anemone::Json, anemone::json_detail::Text>;
extern template class nlohmann::detail::parser<nlohmann::json, anemone::json_detail::Text>;
extern template class nlohmann::detail::parser<nlohmann::json, anemone::json_detail::Literal>;
extern template class nlohmann::detail::parser<anemone::Json, anemone::json_detail::Text>;

#endif  // ANEMONE_ENGINE_FORMATS_JSON_H_
