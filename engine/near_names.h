// engine/near_names.h: what a user may have meant.
#ifndef ANEMONE_ENGINE_NEAR_NAMES_H_
#define ANEMONE_ENGINE_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace anemone {

// The five of `known` that are fewest letters away from `name`, nearest first.
std::vector<std::string> NearNames(absl::string_view name, std::vector<std::string> known);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NEAR_NAMES_H_
