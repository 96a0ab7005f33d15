// tools/command/flag_values.h: what may follow a flag, read and stored. A refusal says what is
// wanted.
#ifndef ANEMONE_TOOLS_COMMAND_FLAG_VALUES_H_
#define ANEMONE_TOOLS_COMMAND_FLAG_VALUES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/command/options.h"

namespace anemone {

absl::Status Bad(const std::string& what);

template <class T>
absl::Status StoreInteger(const std::string& text, int64_t low, int64_t high, T& to) {
  int64_t value;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return Bad(absl::StrCat("want an integer from ", low, " to ", high, ", got '", text, "'"));
  }
  to = static_cast<T>(value);
  return absl::OkStatus();
}

absl::Status StoreNumber(const std::string& text, double& to);
absl::Status StoreNumerics(Options& o, const std::string& value);
absl::Status StoreChoice(const std::string& value, const std::vector<std::string>& choices,
                         std::string& to);

// One for each flag whose value is more than a number or a word.
absl::Status StoreTargets(Options& o, const std::string& value);
absl::Status StoreDim(Options& o, const std::string& value);
absl::Status StoreBucket(Options& o, const std::string& value);
absl::Status StoreShape(Options& o, const std::string& value);
absl::Status StorePolicy(Options& o, const std::string& value);
absl::Status StoreRange(Options& o, const std::string& value);
absl::Status StoreTolerance(Options& o, const std::string& value);
absl::Status StoreInput(Options& o, const std::string& value);
absl::Status StoreArgument(Options& o, const std::string& value);   // 1x8x16x16[:fp16]
absl::Status StoreConstant(Options& o, const std::string& value);   // NAME=SHAPE[:fp16]
absl::Status StoreAttribute(Options& o, const std::string& value);  // key=value

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_FLAG_VALUES_H_
