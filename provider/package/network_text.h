// provider/package/network_text.h: a network's JSON (engine/formats/network_json.h) as the text
// that a package stores, and back from text that may be damaged or forged.
#ifndef ANEMONE_PROVIDER_PACKAGE_NETWORK_TEXT_H_
#define ANEMONE_PROVIDER_PACKAGE_NETWORK_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

// Bytes of names that are not UTF-8 become U+FFFD.
std::string WriteNetworkText(const Json& network);

// kDataLoss: not JSON, nested deeper than 16, or an object of more than 256 keys. Networks that
// Anemone writes stay far below these limits; beyond them, reading would be slow.
absl::StatusOr<Json> ReadNetworkText(absl::string_view text);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_NETWORK_TEXT_H_
