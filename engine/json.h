// engine/json.h: JSON, compiled once: it would be half of every file that uses it.
#ifndef ANEMONE_ENGINE_JSON_H_
#define ANEMONE_ENGINE_JSON_H_

#include "nlohmann/json.hpp"

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;

namespace anemone {

// Keys keep their order.
using Json = nlohmann::ordered_json;

}  // namespace anemone

#endif  // ANEMONE_ENGINE_JSON_H_
