// engine/formats/property_list.h: Apple property lists, XML and binary, as Json. Dictionaries,
// arrays, strings, integers, reals and booleans only: a netplist has nothing else.
#ifndef ANEMONE_ENGINE_FORMATS_PROPERTY_LIST_H_
#define ANEMONE_ENGINE_FORMATS_PROPERTY_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

enum class PropertyListForm : uint8_t { kXml, kBinary };

// Keys stay in the order of `json`. A null is left out, as is its key.
std::string WritePropertyList(const Json& json, PropertyListForm form);

// Of either form. kInvalidArgument: not a property list, one nested deeper than 64, or one that
// holds dates, data or uids.
absl::StatusOr<Json> ReadPropertyList(absl::string_view bytes);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_PROPERTY_LIST_H_
