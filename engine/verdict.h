// engine/verdict.h: a Verdict says whether a target accepts a unit or a network, and if not, why. A
// Judge builds a Verdict.
//
//   Verdict Validate(const SoftmaxParams&, Bottoms, const Target& target, Route route) {
//     Judge judge(target, route);
//     return judge.Has(Cap::kSoftmax) ? judge.Accept() : judge.Reject(rule::kSoftmaxArch);
//   }
//
// The Judge remembers the weakest status of the facts that were queried. A fact that the table does
// not publish is not checked: Has() and Within() return true, and the status becomes `unknown`.
#ifndef ANEMONE_ENGINE_VERDICT_H_
#define ANEMONE_ENGINE_VERDICT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/rule.h"
#include "engine/target.h"

namespace anemone {

// A compile path: kMil is Core ML's conversion, kNetplist is a directly authored netplist. They
// accept different operations.
enum class Route { kNetplist, kMil };
absl::string_view RouteName(Route route);                  // "netplist", "mil"
absl::StatusOr<Route> ParseRoute(absl::string_view name);  // kInvalidArgument: another name

struct Verdict {
  bool accepted = true;
  Status status = Status::kMeasured;  // the weakest of the facts used
  Route route = Route::kNetplist;
  // If refused:
  Layer layer = Layer::kValidator;
  const Rule* rule = nullptr;  // null for Anemone's own refusals (layers coverage and policy)
  std::string message;         // the rule's message with its values; "" if no text is known
  // If accepted, but not for certain: the first rule by which Judge::Doubt() was called. Else null.
  const Rule* doubt = nullptr;
  // For Anemone's own refusals: the id shown as `rule`, and the remedy.
  std::string own_rule;
  std::string own_remedy;

  // The id of the rule, of the engine or of Anemone.
  std::string rule_id() const { return rule != nullptr ? rule->id : own_rule; }
};

// A refusal by Anemone, not by the engine.
Verdict OwnRefusal(Layer layer, absl::string_view rule, std::string message, std::string remedy);

class Judge {
 public:
  Judge(const Target& target, Route route) : target_(target) { verdict_.route = route; }

  // True if the capability byte is set, or is not published.
  bool Has(Cap cap);
  // True if `value` is not above the limit, or the limit is not published.
  bool Within(int64_t value, Limit limit);
  // True if the target's family is that of the row or a later one, or is not known. `row` is a Rule
  // or a WarningRule.
  template <class Row>
  bool Reaches(const Row& row) {
    return FamilyAtLeast(row.family);
  }
  // The same for the rule's family of `operation`; false if the rule does not list the operation.
  bool Reaches(const Rule& rule, absl::string_view operation) {
    const std::optional<Family> family = rule.FamilyOf(operation);
    return family && FamilyAtLeast(*family);
  }
  // The limit's value, or `fallback` if it is not published (the status then becomes `unknown`).
  int64_t Value(Limit limit, int64_t fallback);

  // Notes that the sources do not settle whether `rule` refuses: they contradict each other, or do
  // not publish what decides. The status becomes `unknown`, and a warning names the rule.
  void Doubt(const Rule& rule);

  // Refuses by `rule`, whose printf pattern takes `args`.
  template <class... Args>
  Verdict Reject(const Rule& rule, const Args&... args) {
    return RejectFormatted(rule, {absl::FormatArg(args)...});
  }
  Verdict Accept() const { return verdict_; }
  // Accepts if the target reaches the rule's family, else refuses by the rule.
  template <class... Args>
  Verdict Requires(const Rule& rule, const Args&... args) {
    return Reaches(rule) ? Accept() : Reject(rule, args...);
  }

  const Target& target() const { return target_; }
  Route route() const { return verdict_.route; }

 private:
  bool FamilyAtLeast(Family floor);
  Verdict RejectFormatted(const Rule& rule, const std::vector<absl::FormatArg>& args);
  void Ask(Status status) { verdict_.status = Weaker(verdict_.status, status); }

  const Target& target_;
  Verdict verdict_;
};

// The first refusal of the two; if there is none, an acceptance with the weaker status and the
// first doubt.
Verdict Both(Verdict a, Verdict b);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_VERDICT_H_
