// engine/warning.h: warnings about an accepted network that runs more slowly or less exactly than
// it could. A warning never changes a verdict. The rules are in engine/tables/warnings.json.
#ifndef ANEMONE_ENGINE_WARNING_H_
#define ANEMONE_ENGINE_WARNING_H_

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/network.h"
#include "engine/rule.h"

namespace anemone {

struct WarningRule {
  const char* id;
  const char* words;  // ours, a printf pattern
  const char* source;
  Status status;
  const char* remedy;
  bool of_kind = false;  // the text applies to all units of a kind
  // The number that decides whether the warning is given, or 0 if there is none.
  int64_t limit = 0;
  // The numbers, where there are several.
  absl::Span<const int64_t> values = {};
  // The first family that is not warned.
  Family family = Family::kFirst;
};

absl::Span<const WarningRule* const> AllWarnings();

// Facts about a device at run time that apply to every program. WarningsOf() never returns them.
absl::Span<const WarningRule* const> DeviceRules();

struct Warning {
  const WarningRule* rule = nullptr;
  int unit = -1;  // index in the network; -1 for a warning about its ports
  std::string message;
  // For a unit that is accepted, but not for certain: the rule in doubt, which has the warning's
  // id, remedy and source. Else null.
  const Rule* doubt = nullptr;

  const char* id() const { return doubt != nullptr ? doubt->id : rule->id; }
  const char* remedy() const { return doubt != nullptr ? doubt->remedy : rule->remedy; }
  const char* source() const { return doubt != nullptr ? doubt->source : rule->source; }
};

// Collects warnings; the `warn` function of a kind adds to it.
class WarningList {
 public:
  // Adds a warning by `rule`, whose printf pattern takes `args`.
  template <class... Args>
  void Add(const WarningRule& rule, const Args&... args) {
    AddFormatted(rule, {absl::FormatArg(args)...});
  }
  // Adds the warning that the verdict of a unit is not certain because of `doubt`.
  void AddDoubt(const Rule& doubt);
  std::vector<Warning> Take() { return std::move(warnings_); }
  int unit = -1;  // the unit of the warnings added next

 private:
  void AddFormatted(const WarningRule& rule, const std::vector<absl::FormatArg>& args);
  std::vector<Warning> warnings_;
};

// The warnings about an accepted network: for each unit those of its kind (UnitRow.judge.warn) and
// those about its verdict and operands, then those about the ports. The time is linear in the
// number of units. `in_doubt`: the network's verdict has a doubt; if false, the units are not
// validated again to find those that have.
std::vector<Warning> WarningsOf(const Network& network, bool in_doubt, const Target& target,
                                Route route);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_WARNING_H_
