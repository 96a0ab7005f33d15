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

// A question for an error message: "did you mean check?", or "did you mean compile or completion?";
// "" if no known name differs from `name` by few letters or starts with it.
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& known);

// The names of NearNames() as text: "'batch', 'width', ...". The dots are left out if all of
// `known` is listed.
std::string NearText(absl::string_view name, std::vector<std::string> known);

}  // namespace anemone

#endif  // ANEMONE_BASE_NEAR_NAMES_H_
