// base/near_names.h: finds the known names closest to a misspelled one, for error messages.
#ifndef ANEMONE_BASE_NEAR_NAMES_H_
#define ANEMONE_BASE_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace anemone {

// Returns up to five of `known` with the smallest edit distance to `name`, nearest first. Ignores
// case; compares the first 64 characters.
std::vector<std::string> NearNames(absl::string_view name, std::vector<std::string> known);

// The same as text: "'batch', 'width', ...". The dots are left out if all of `known` is listed.
std::string NearText(absl::string_view name, std::vector<std::string> known);

}  // namespace anemone

#endif  // ANEMONE_BASE_NEAR_NAMES_H_
