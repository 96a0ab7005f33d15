// base/near_names.h: what a user may have meant, for messages.
#ifndef ANEMONE_BASE_NEAR_NAMES_H_
#define ANEMONE_BASE_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace anemone {

// Those of `known` that are fewest letters away from `name`, at most five, nearest first. Of a name
// as long as a page only the start is compared.
std::vector<std::string> NearNames(absl::string_view name, std::vector<std::string> known);

// The same for a message: "'batch', 'width', ...", without dots if these are all.
std::string NearText(absl::string_view name, std::vector<std::string> known);

}  // namespace anemone

#endif  // ANEMONE_BASE_NEAR_NAMES_H_
