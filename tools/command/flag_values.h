// tools/command/flag_values.h: reads and stores the values of the commands' own flags. An error
// says what is wanted.
#ifndef ANEMONE_TOOLS_COMMAND_FLAG_VALUES_H_
#define ANEMONE_TOOLS_COMMAND_FLAG_VALUES_H_

#include <string>

#include "absl/status/status.h"
#include "tools/command/options.h"

namespace anemone {

absl::Status Bad(const std::string& what);

// A flag without a value.
template <auto Option, bool kValue>
absl::Status Set(Options& o, const std::string&) {
  o.*Option = kValue;
  return absl::OkStatus();
}
// A value as it is. It must not be empty.
template <auto Option>
absl::Status KeepText(Options& o, const std::string& value) {
  if (value.empty()) return Bad("want a value, got ''");
  o.*Option = value;
  return absl::OkStatus();
}

absl::Status StoreNumber(const std::string& text, double& to);

// Each reads the value of one flag.
absl::Status StoreRange(Options& o, const std::string& value);
absl::Status StoreTolerance(Options& o, const std::string& value);
absl::Status StoreSeed(Options& o, const std::string& value);
absl::Status StoreInput(Options& o, const std::string& value);
absl::Status StoreArgument(Options& o, const std::string& value);   // 1x8x16x16[:fp16]
absl::Status StoreConstant(Options& o, const std::string& value);   // NAME=SHAPE[:fp16]
absl::Status StoreAttribute(Options& o, const std::string& value);  // key=value

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_FLAG_VALUES_H_
