// provider/package/cbor.h: JSON values as CBOR (RFC 8949). Unlike JSON text, CBOR can hold numbers
// that are not finite and names that are not UTF-8.
#ifndef ANEMONE_PROVIDER_PACKAGE_CBOR_H_
#define ANEMONE_PROVIDER_PACKAGE_CBOR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

std::string WriteCbor(const Json& json);

// kDataLoss: `bytes` is not CBOR, or it is nested deeper or is larger than our documents are. (The
// reader is recursive, so deep nesting would overflow the stack.)
absl::StatusOr<Json> ReadCbor(absl::string_view bytes);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_CBOR_H_
