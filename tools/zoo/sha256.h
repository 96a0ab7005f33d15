// tools/zoo/sha256.h: SHA-256 (FIPS 180-4), as hexadecimal digits.
#ifndef ANEMONE_TOOLS_ZOO_SHA256_H_
#define ANEMONE_TOOLS_ZOO_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace anemone {

std::string Sha256(absl::string_view bytes);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SHA256_H_
