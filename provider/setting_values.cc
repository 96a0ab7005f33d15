// How the values of settings are read from text, and how they are described.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/target.h"
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

std::string ValuesText(const Setting& setting) {
  return setting.value == nullptr ? "`true` or `false`" : absl::StrCat("`", setting.value, "`");
}

std::string MeaningText(const Setting& setting) {
  const char* brief = setting.brief_of_value == nullptr ? setting.brief : setting.brief_of_value;
  return absl::StrCat(brief, *setting.help == '\0' ? "" : " ", setting.help);
}

std::vector<std::string> TargetsOf(const Settings& settings) {
  std::vector<std::string> names;
  std::set<const Target*> seen;  // m4 and h16 are the same target
  const auto add = [&](std::string name) {
    const auto target = FindTarget(name);
    if (!target.ok() || seen.insert(*target).second) names.push_back(std::move(name));
  };
  for (absl::string_view piece : absl::StrSplit(settings.target, ',')) {
    const std::string name(absl::StripAsciiWhitespace(piece));
    if (absl::AsciiStrToLower(name) != "all") {
      add(name);
      continue;
    }
    for (const Target& target : AllTargets()) add(std::string(target.option_name()));
  }
  return names;
}

namespace {

// `least`: of the sizes that the setting gives for the dimension or input.
absl::Status CheckSizesOf(const char* setting, const std::string& name,
                          absl::Span<const int64_t> sizes, int64_t least) {
  for (const int64_t size : sizes) {
    if (size >= least) continue;
    return UsageError(absl::StrCat(
        setting, " '", Printable(name), "': want sizes of at least ", std::max<int64_t>(least, 0),
        least < 0 ? ", or -1 for what the model declares" : "", ", got ", size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RequireSizes(const Settings& settings) {
  for (const auto& [name, size] : settings.dims) {
    ANEMONE_RETURN_IF_ERROR(CheckSizesOf("dims", name, {size}, 0));
  }
  for (const auto& [input, shape] : settings.shapes) {
    ANEMONE_RETURN_IF_ERROR(CheckSizesOf("shapes", input, shape, -1));
  }
  for (const auto& [name, sizes] : settings.buckets) {
    ANEMONE_RETURN_IF_ERROR(CheckSizesOf("buckets", name, sizes, 1));
  }
  if (settings.dim_ranges.empty()) return absl::OkStatus();
  const auto& [name, range] = *settings.dim_ranges.begin();
  return UsageError(absl::StrCat("--dim ", name, "=", range.first, "..", range.second,
                                 ": a range of sizes is for `convert --to mlpackage` without "
                                 "--segments; give one size"));
}

}  // namespace anemone
