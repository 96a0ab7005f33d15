// engine/verdict.h: the answer to "does this target accept this unit?", and the pen it is written
// with.
//
//   Verdict Validate(const SoftmaxParams& p, Bottoms in, const Target& t, Route r) {
//     Judge judge(t, r);
//     if (!judge.Has(Cap::kSoftmax)) return judge.Reject(rule::kSoftmaxArch);
//     return judge.Accept();
//   }
//
// The Judge remembers the weakest status of the facts it was asked for. A fact that the table does
// not know is not checked: Has() answers true, Within() true, and the status becomes `unknown`.
#ifndef ANEMONE_ENGINE_VERDICT_H_
#define ANEMONE_ENGINE_VERDICT_H_

#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "engine/rule.h"
#include "engine/target.h"

namespace anemone {

// Conversion (MIL) and direct authoring (netplist) have different gates.
enum class Route { kNetplist, kMil };
absl::string_view RouteName(Route route);  // "netplist", "mil"

struct Verdict {
  bool accepted = true;
  Status status = Status::kMeasured;  // the weakest of the facts asked
  Route route = Route::kNetplist;
  // If refused:
  Layer layer = Layer::kValidator;
  const Rule* rule = nullptr;  // null for coverage and policy, which are ours
  std::string message;         // the rule's words filled in; "" where no text is known
  // For the refusals that are ours (coverage, policy): the id shown as `rule`, and the remedy.
  std::string own_rule;
  std::string own_remedy;

  // The id of the rule, the engine's or ours.
  std::string rule_id() const { return rule != nullptr ? rule->id : own_rule; }
};

// A refusal of our own, not the engine's.
Verdict OwnRefusal(Layer layer, absl::string_view rule, std::string message, std::string remedy);

// Indices of families (targets.json family_index).
inline constexpr int kFamilyA13 = 2;

class Judge {
 public:
  Judge(const Target& target, Route route) : target_(target) { verdict_.route = route; }

  // The capability byte is set, or not published.
  bool Has(Cap cap);
  // `value` does not pass the limit, or the limit is not published.
  bool Within(int64_t value, Limit limit);
  // The target's family is at least `floor` (op_matrix.json min_family), or not known.
  bool FamilyAtLeast(int floor);
  // The limit's value, or `fallback` if not published (the status then is `unknown`).
  int64_t Value(Limit limit, int64_t fallback);

  // Refuses by `rule`, whose printf pattern takes `args`.
  template <class... Args>
  Verdict Reject(const Rule& rule, const Args&... args) {
    return RejectFormatted(rule, {absl::FormatArg(args)...});
  }
  Verdict Accept() const { return verdict_; }

  const Target& target() const { return target_; }
  Route route() const { return verdict_.route; }

 private:
  Verdict RejectFormatted(const Rule& rule, const std::vector<absl::FormatArg>& args);
  void Ask(Status status) { verdict_.status = Weaker(verdict_.status, status); }

  const Target& target_;
  Verdict verdict_;
};

// The first refusal of the two, else acceptance with the weaker status.
Verdict Both(Verdict a, Verdict b);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_VERDICT_H_
