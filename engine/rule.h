// engine/rule.h: one reason for which the engine refuses something, as the tables have it.
#ifndef ANEMONE_ENGINE_RULE_H_
#define ANEMONE_ENGINE_RULE_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {

// How far a fact can be trusted, best first; a verdict has the weakest of the facts asked.
enum class Status { kMeasured, kDecompileDerived, kPredicted, kUnknown };
absl::string_view StatusName(Status status);  // "measured", "decompile-derived", ...
inline Status Weaker(Status a, Status b) { return a < b ? b : a; }

// Who refuses (docs/interface.md). kCoverage: Anemone has no lowering, the engine was not asked.
// kPolicy: the user said so.
enum class Layer { kFrontend, kParser, kValidator, kOnDevice, kCodegen, kCoverage, kPolicy };
absl::string_view LayerName(Layer layer);  // "frontend", "on-device", ...

// A row of engine/tables/rules/*.json, joined with the fact it rests on.
struct Rule {
  const char* id;
  Layer layer;
  const char* message;    // the compiler's words, a printf pattern; null where no text is known
  const char* condition;  // when it is raised, in the tables' words
  const char* source;
  Status status;
  const char* remedy;  // what a user can do; null if nothing
};

absl::Span<const Rule* const> AllRules();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_RULE_H_
