#include "engine/verdict.h"

#include <utility>

#include "engine/target_questions.h"

namespace anemone {

absl::string_view StatusName(Status status) {
  static constexpr absl::string_view kNames[] = {"measured", "decompile-derived", "predicted",
                                                 "unknown"};
  return kNames[static_cast<int>(status)];
}

absl::string_view LayerName(Layer layer) {
  static constexpr absl::string_view kNames[] = {"frontend", "parser",   "validator", "on-device",
                                                 "codegen",  "coverage", "policy"};
  return kNames[static_cast<int>(layer)];
}

absl::string_view RouteName(Route route) { return route == Route::kMil ? "mil" : "netplist"; }

absl::StatusOr<Route> ParseRoute(absl::string_view name) {
  for (Route route : {Route::kNetplist, Route::kMil}) {
    if (name == RouteName(route)) return route;
  }
  return absl::InvalidArgumentError("want netplist or mil");
}

std::optional<Family> Rule::FamilyOf(absl::string_view operation) const {
  for (const OperationFamily& row : families) {
    if (row.operation == operation) return row.family;
  }
  return std::nullopt;
}

Verdict OwnRefusal(Layer layer, absl::string_view rule, std::string message, std::string remedy) {
  Verdict verdict;
  verdict.accepted = false;
  verdict.status = Status::kUnknown;  // no fact was used
  verdict.layer = layer;
  verdict.own_rule = std::string(rule);
  verdict.message = std::move(message);
  verdict.own_remedy = std::move(remedy);
  return verdict;
}

bool Judge::Has(Cap cap) {
  auto known = target_.Has(cap);
  Ask(known ? known->status : Status::kUnknown);
  return !known || known->value;
}

bool Judge::Within(int64_t value, Limit limit) {
  const auto known = IsWithin(value, limit, target_, verdict_.status);
  Ask(known ? known->status : Status::kUnknown);
  return !known || known->value;
}

bool Judge::FamilyAtLeast(Family floor) {
  const std::optional<bool> reaches = ReachesFamily(IndexOf(floor), target_);
  Ask(reaches ? target_.status() : Status::kUnknown);
  return reaches.value_or(true);
}

int64_t Judge::Value(Limit limit, int64_t fallback) {
  auto known = target_.limit(limit);
  Ask(known ? known->status : Status::kUnknown);
  return known ? known->value : fallback;
}

void Judge::Doubt(const Rule& rule) {
  Ask(Status::kUnknown);
  if (verdict_.doubt == nullptr) verdict_.doubt = &rule;
}

Verdict Judge::RejectFormatted(const Rule& rule, const std::vector<absl::FormatArg>& args) {
  Ask(rule.status);
  if (rule.seen_to) {
    const bool is_later = ReachesFamily(IndexOf(*rule.seen_to) + 1, target_).value_or(true);
    if (is_later) Ask(Status::kPredicted);
  }
  Verdict refused = verdict_;
  refused.accepted = false;
  refused.doubt = nullptr;
  refused.layer = rule.layer;
  // After the frontend, the conversion route reports every refusal as on-device (guide ch4).
  if (route() == Route::kMil && rule.layer != Layer::kFrontend) refused.layer = Layer::kOnDevice;
  refused.rule = &rule;
  if (rule.message != nullptr) {
    std::string filled;
    // If the arguments do not fit the pattern, the pattern itself is shown.
    refused.message = absl::FormatUntyped(&filled, absl::UntypedFormatSpec(rule.message), args)
                          ? filled
                          : std::string(rule.message);
  }
  return refused;
}

Verdict Both(Verdict a, Verdict b) {
  if (!a.accepted) return a;
  b.status = Weaker(a.status, b.status);
  if (b.accepted && a.doubt != nullptr) b.doubt = a.doubt;
  return b;
}

}  // namespace anemone
