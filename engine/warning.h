// engine/warning.h: what the engine takes, and is slower or less exact for. A warning never changes
// a verdict. The rules are engine/tables/warnings.json.
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
  bool of_kind = false;  // what it says holds of all units of a kind
};

absl::Span<const WarningRule* const> AllWarnings();

// What holds of a device at run time, whatever the program: no network is warned of these.
absl::Span<const WarningRule* const> DeviceRules();

struct Warning {
  const WarningRule* rule = nullptr;
  int unit = -1;  // of the network; -1: its ports
  std::string message;
};

// Where a kind's `warn` puts what it finds.
class WarningList {
 public:
  // `rule`'s words filled in.
  template <class... Args>
  void Add(const WarningRule& rule, const Args&... args) {
    AddFormatted(rule, {absl::FormatArg(args)...});
  }
  std::vector<Warning> Take() { return std::move(warnings_); }
  int unit = -1;  // that the next ones are about

 private:
  void AddFormatted(const WarningRule& rule, const std::vector<absl::FormatArg>& args);
  std::vector<Warning> warnings_;
};

// Of an accepted network: each unit's own (UnitRow.warn), then what holds of any unit's operands,
// then the ports. Linear in units.
std::vector<Warning> WarningsOf(const Network& network, const Target& target, Route route);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_WARNING_H_
