// engine/formats/property_list.h: converts Apple property lists (XML and binary) to Json and back.
// Only dictionaries, arrays, strings, integers, reals and booleans are supported: netplists use no
// others.
#ifndef ANEMONE_ENGINE_FORMATS_PROPERTY_LIST_H_
#define ANEMONE_ENGINE_FORMATS_PROPERTY_LIST_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

enum class PropertyListForm : uint8_t { kXml, kBinary };

// Keys keep the order of `json`. Keys with the value null are omitted.
std::string WritePropertyList(const Json& json, PropertyListForm form);

// Reads a list of either form. kInvalidArgument if it is not a property list, if it is nested
// deeper than 64, or if it has dates, data or uids.
absl::StatusOr<Json> ReadPropertyList(absl::string_view bytes);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_PROPERTY_LIST_H_
