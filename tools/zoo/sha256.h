// tools/zoo/sha256.h: SHA-256 (FIPS 180-4), as hexadecimal digits.
#ifndef ANEMONE_TOOLS_ZOO_SHA256_H_
#define ANEMONE_TOOLS_ZOO_SHA256_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace anemone {

std::string Sha256(absl::string_view bytes);
// Asks `goes_on` before each 16 MiB. None if it says no.
std::optional<std::string> Sha256While(absl::string_view bytes, absl::FunctionRef<bool()> goes_on);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SHA256_H_
