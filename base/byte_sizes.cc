#include "base/byte_sizes.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace anemone {
namespace {

struct Unit {
  const char* name;  // in lower case
  int64_t bytes;
};
constexpr Unit kUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", int64_t{1} << 10},
    {"kib", int64_t{1} << 10},
    {"kb", 1'000},
    {"m", int64_t{1} << 20},
    {"mib", int64_t{1} << 20},
    {"mb", 1'000'000},
    {"g", int64_t{1} << 30},
    {"gib", int64_t{1} << 30},
    {"gb", 1'000'000'000},
};

bool IsOfNumber(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.'; }

}  // namespace

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && IsOfNumber(text[digits])) ++digits;
  const absl::string_view number = text.substr(0, digits);
  const std::string unit =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(text.substr(number.size())));
  for (const Unit& row : kUnits) {
    if (unit != row.name) continue;
    int64_t whole = 0;
    double value = 0;
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    if (absl::SimpleAtoi(number, &whole)) {
      if (whole <= kMost / row.bytes) return whole * row.bytes;
    } else if (absl::SimpleAtod(number, &value) && row.bytes > 1) {
      value *= static_cast<double>(row.bytes);
      if (value < static_cast<double>(kMost)) return static_cast<int64_t>(value);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("want a number of bytes, as 512M or 2GB, got '", text, "'"));
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kNames[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : kNames) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

}  // namespace anemone
