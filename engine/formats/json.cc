#include "engine/formats/json.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::serializer<anemone::Json>;
template class nlohmann::detail::lexer<nlohmann::json, anemone::json_detail::Text>;
template class nlohmann::detail::lexer<nlohmann::json, anemone::json_detail::Literal>;
template class nlohmann::detail::lexer<anemone::Json, anemone::json_detail::Text>;
template class nlohmann::detail::parser<nlohmann::json, anemone::json_detail::Text>;
template class nlohmann::detail::parser<nlohmann::json, anemone::json_detail::Literal>;
template class nlohmann::detail::parser<anemone::Json, anemone::json_detail::Text>;
