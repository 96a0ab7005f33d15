// engine/rule.h: a Rule is one reason for which the engine refuses something. The rules are
// generated from engine/tables/rules.
#ifndef ANEMONE_ENGINE_RULE_H_
#define ANEMONE_ENGINE_RULE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {

// How far a fact can be trusted, the most certain first. The status of a verdict is the weakest
// status of the facts that it used.
enum class Status { kMeasured, kDecompileDerived, kPredicted, kUnknown };
absl::string_view StatusName(Status status);  // "measured", "decompile-derived", ...
inline Status Weaker(Status a, Status b) { return a < b ? b : a; }

// The stage that refuses (docs/interface.md). kCoverage: Anemone has no lowering, and the engine
// was not asked. kPolicy: the user's policy keeps the node on the CPU.
enum class Layer { kFrontend, kParser, kValidator, kOnDevice, kCodegen, kCoverage, kPolicy };
absl::string_view LayerName(Layer layer);  // "frontend", "on-device", ...

// The index of a family of targets (targets.json family_index). It is a type of its own so that a
// floor comes from a row of a table (Judge::Reaches, Judge::Requires), not from a number.
enum class Family : int { kFirst = 0 };
constexpr int IndexOf(Family family) { return static_cast<int>(family); }

struct OperationFamily {
  const char* operation;
  Family family;
};

// A row of engine/tables/rules/*.json, joined with the fact that it rests on.
struct Rule {
  const char* id;
  Layer layer;
  const char* message;    // the compiler's message, a printf pattern; null if it is not known
  const char* condition;  // the requirement, or when the message is raised; may be ""
  const char* source;
  Status status;
  const char* remedy;  // what a user can do; null if there is no advice

  // The number that the condition compares with, or 0 if it has none.
  int64_t limit = 0;
  // The values that the condition lists.
  absl::Span<const int64_t> values = {};
  // The first family that the rule does not refuse (Judge::Requires, Judge::Reaches).
  Family family = Family::kFirst;
  // The same by operation, where operations differ. No family has an operation that is not listed.
  absl::Span<const OperationFamily> families = {};
  // If set, `status` is that of targets up to this family; for later families it is `predicted`.
  std::optional<Family> seen_to = {};
  // The row of conflicts.md, if the sources contradict each other about the rule; `status` is then
  // `unknown`. Else null.
  const char* conflict = nullptr;

  bool Lists(int64_t value) const {
    return std::find(values.begin(), values.end(), value) != values.end();
  }
  std::optional<Family> FamilyOf(absl::string_view operation) const;
};

absl::Span<const Rule* const> AllRules();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_RULE_H_
