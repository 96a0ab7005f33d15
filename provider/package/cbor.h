// provider/package/cbor.h: JSON values as CBOR (RFC 8949), which holds what JSON's text does not:
// numbers that are not finite, names that are no UTF-8.
#ifndef ANEMONE_PROVIDER_PACKAGE_CBOR_H_
#define ANEMONE_PROVIDER_PACKAGE_CBOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

std::string WriteCbor(const Json& json);

// kDataLoss: it is none, or goes deeper or wider than documents of ours do (which a reader that
// calls itself for each level would not survive).
absl::StatusOr<Json> ReadCbor(absl::string_view bytes);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_CBOR_H_
