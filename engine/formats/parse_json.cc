#include "engine/formats/parse_json.h"

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace anemone {

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  std::array<int, kDeepestJson + 1> keys{};  // so far, of the open object at each depth
  std::string problem;
  // What comes after the first problem is dropped.
  const auto keep = [&](int depth, Json::parse_event_t event, Json&) {
    const bool opens =
        event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start;
    if (!problem.empty()) return false;
    if (opens && depth >= kDeepestJson) {
      problem = absl::StrCat("is nested deeper than ", kDeepestJson, " levels");
    } else if (opens) {
      keys[static_cast<size_t>(depth) + 1] = 0;
    } else if (event == Json::parse_event_t::key &&
               ++keys[static_cast<size_t>(depth)] > kMostJsonKeys) {
      problem = absl::StrCat("has an object of more than ", kMostJsonKeys, " keys");
    }
    return problem.empty();
  };
  Json parsed = Json::parse(text, keep, /*allow_exceptions=*/false);
  if (problem.empty() && parsed.is_discarded()) problem = "is not valid JSON";
  if (!problem.empty()) return absl::InvalidArgumentError(problem);
  return parsed;
}

}  // namespace anemone
