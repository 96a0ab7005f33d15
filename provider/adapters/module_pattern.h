// provider/adapters/module_pattern.h: the keys of alpha_pattern and rank_pattern in a
// configuration of PEFT. A key is a regular expression for the last parts of a module's path.
//
//   ANEMONE_ASSIGN_OR_RETURN(const auto key, ModulePattern::Parse("q_proj|v_proj"));
//   key.Matches("encoder.0.q_proj");  // true
//   key.Matches("encoder.0.qq_proj");  // false: a part matches as a whole
#ifndef ANEMONE_PROVIDER_ADAPTERS_MODULE_PATTERN_H_
#define ANEMONE_PROVIDER_ADAPTERS_MODULE_PATTERN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace anemone {

class ModulePattern {
 public:
  // Of regular expressions it knows . \d \. ? * + and | , and ^ and $ at the ends of an
  // alternative. kUnimplemented: the key has other signs, or these elsewhere, or more than 1000
  // characters. kInvalidArgument: an alternative is empty.
  static absl::StatusOr<ModulePattern> Parse(absl::string_view key);

  bool Matches(absl::string_view module) const;

 private:
  struct Step {
    enum Kind { kCharacter, kDigit, kAny } kind = kCharacter;
    char character = 0;
    bool optional = false, repeated = false;

    bool Takes(char next) const;
  };
  struct Alternative {
    bool from_start = false;  // it begins with ^
    std::vector<Step> steps;

    bool Matches(absl::string_view module) const;
  };

  static absl::StatusOr<std::vector<Alternative>> AlternativesOf(absl::string_view key);

  std::vector<Alternative> alternatives_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ADAPTERS_MODULE_PATTERN_H_
