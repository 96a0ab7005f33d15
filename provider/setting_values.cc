// How the values of settings are read from text.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "provider/settings.h"

namespace anemone {

absl::Status StoreInteger(const std::string& text, int64_t low, int64_t high, int64_t& to) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return absl::InvalidArgumentError(
        absl::StrCat("want an integer from ", low, " to ", high, ", got '", text, "'"));
  }
  to = value;
  return absl::OkStatus();
}

absl::Status StoreChoice(const std::string& text, absl::Span<const std::string> choices,
                         std::string& to) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("want one of ", absl::StrJoin(choices, ", "), "; got '", text, "'"));
  }
  to = text;
  return absl::OkStatus();
}

absl::Status ReadShape(const std::string& text, std::vector<int64_t>& dims) {
  dims.clear();
  if (text == "scalar") return absl::OkStatus();
  for (absl::string_view size : absl::StrSplit(text, absl::ByAnyChar("x,"))) {
    dims.push_back(-1);
    if (size == "?") continue;
    ANEMONE_RETURN_IF_ERROR(StoreInteger(std::string(size), 0, kLargestSize, dims.back()));
  }
  return absl::OkStatus();
}

absl::Status SplitPair(const std::string& text, std::string& name, std::string& value) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) {
    return absl::InvalidArgumentError(absl::StrCat("want NAME=VALUE, got '", text, "'"));
  }
  name = text.substr(0, at);
  value = text.substr(at + 1);
  return absl::OkStatus();
}

}  // namespace anemone
