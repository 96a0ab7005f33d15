// partitioner/plan_json.h: a plan as the JSON that `anemone check --json` promises
// (docs/schemas/check.json).
#ifndef ANEMONE_PARTITIONER_PLAN_JSON_H_
#define ANEMONE_PARTITIONER_PLAN_JSON_H_

#include <optional>
#include <string>
#include <vector>

#include "engine/field.h"
#include "partitioner/plan.h"

namespace anemone {

// One line of UTF-8. Bytes in model names that are not valid UTF-8 are replaced.
std::string JsonText(const Json& json);

// Null if the text is empty or a null pointer.
Json OrNull(absl::string_view text);
Json OrNull(const char* text);
// Null if there is no number.
template <class Number>
Json OrNull(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

// Adds why a verdict refuses: layer, message, rule, source, remedy and condition. Adds nulls if it
// accepts.
void AddReason(const Verdict& verdict, Json& json);
// The same of an entry on the CPU.
void AddReason(const PlanEntry& entry, Json& json);

// The "summary" of an item of "targets".
Json SummaryJson(const Model& model, const Plan& plan);

// The items of a model's "targets", as text. Nodes that several plans place alike are written once.
std::vector<std::string> PlanJsonTexts(const Model& model, absl::Span<const Plan* const> plans);
// One of them, as text and as Json, which takes longer.
std::string PlanJsonText(const Model& model, const Plan& plan);
Json PlanJson(const Model& model, const Plan& plan);

// One item of "models". `plan` is one of its plans, or null, and `targets` are the texts of the
// items of "targets".
std::string ModelJsonText(const Model& model, const Plan* plan,
                          absl::Span<const std::string> targets);
// The same as Json, with an item of "targets" for each plan.
Json ModelJson(const Model& model, absl::Span<const Plan> plans);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_JSON_H_
