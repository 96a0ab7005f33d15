#include "engine/unit_kind.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace anemone {

absl::Status CheckKeys(const Json& keys, const std::string& type,
                       const std::vector<std::string>& known) {
  for (const auto& [key, value] : keys.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("key '", key, "': ", type, " has no such key; it has ",
                     known.empty() ? "none" : absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace anemone
