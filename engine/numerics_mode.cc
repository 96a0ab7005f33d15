#include "engine/numerics_mode.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace anemone {

absl::StatusOr<NumericsMode> NumericsMode::Parse(absl::string_view text) {
  const auto bad = [&](const std::string& want) {
    return absl::InvalidArgumentError(absl::StrCat("want ", want));
  };
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  NumericsMode mode;
  mode.is_exact_ = parts[0] == "exact";
  if (!mode.is_exact_ && text != "fast") return bad("fast or exact, or exact,RULE=OPTION");
  const absl::Span<const math::NumericsRule> rules = math::NumericsRules();
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    const auto* rule = std::find_if(rules.begin(), rules.end(), [&](const math::NumericsRule& r) {
      return pair.first == r.id;
    });
    if (rule == rules.end()) {
      const auto name = [](std::string* out, const math::NumericsRule& r) { out->append(r.id); };
      return bad(
          absl::StrCat("one of the open rules ", absl::StrJoin(rules, ", ", name), " before '='"));
    }
    if (std::any_of(mode.choices_.begin(), mode.choices_.end(),
                    [&](const Choice& c) { return c.rule == rule; })) {
      return bad(absl::StrCat(rule->id, " once"));
    }
    const auto* option = std::find(rule->options.begin(), rule->options.end(), pair.second);
    if (option == rule->options.end()) {
      return bad(
          absl::StrCat(rule->id, "=", absl::StrJoin(rule->options, "|"), " (", rule->what, ")"));
    }
    mode.choices_.push_back({rule, static_cast<uint8_t>(option - rule->options.begin())});
  }
  return mode;
}

math::Numerics NumericsMode::On(const Target& target) const {
  math::Numerics numerics = math::NumericsOf(target.family());
  for (const Choice& choice : choices_) choice.rule->set(numerics, choice.option);
  return numerics;
}

}  // namespace anemone
