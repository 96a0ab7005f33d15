// engine/numerics_mode.h: how the software engine computes, as users say it.
//
//   ASSIGN_OR_RETURN(NumericsMode mode, NumericsMode::Parse("exact,mac-tile=none"));
//   if (mode.is_exact()) math::Numerics n = mode.On(target);
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
  // "fast"; "exact"; or "exact,RULE=OPTION[,RULE=OPTION...]", where a rule of numerics.json that
  // its sources leave open is taken another way than the target's family is believed to.
  // Errors: kInvalidArgument, which names the rules, or the rule's options.
  static absl::StatusOr<NumericsMode> Parse(absl::string_view text);

  bool is_exact() const { return is_exact_; }
  // What `exact` means on a target.
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
