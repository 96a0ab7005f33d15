// engine/numerics_mode.h: parses the value of `--numerics`, which says how the software engine
// computes.
//
//   ANEMONE_ASSIGN_OR_RETURN(NumericsMode mode, NumericsMode::Parse("exact,mac-tile=none"));
//   if (mode.is_exact()) numerics = mode.On(target);
#ifndef ANEMONE_ENGINE_NUMERICS_MODE_H_
#define ANEMONE_ENGINE_NUMERICS_MODE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/target.h"
#include "numerics.h"  // generated

namespace anemone {

class NumericsMode {
 public:
  // Parses "fast", "exact" or "exact,RULE=OPTION[,RULE=OPTION...]". RULE is a rule of numerics.json
  // whose sources allow several readings; OPTION replaces the reading assumed for the target's
  // family. Errors: kInvalidArgument; the message lists the rules, or the options of the rule.
  static absl::StatusOr<NumericsMode> Parse(absl::string_view text);

  bool is_exact() const { return is_exact_; }
  // The arithmetic of `exact` mode for a target.
  math::Numerics On(const Target& target) const;

 private:
  struct Choice {
    const math::NumericsRule* rule;
    uint8_t option;
  };
  bool is_exact_ = false;
  std::vector<Choice> choices_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NUMERICS_MODE_H_
