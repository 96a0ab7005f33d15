#include "provider/planning.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {

absl::StatusOr<PlanOptions> PlanningOptions(const std::string& target, const std::string& route,
                                            const std::string& policy, bool rewrites) {
  PlanOptions options{.rewrites = rewrites};
  ANEMONE_ASSIGN_OR_RETURN(options.target, FindTarget(target));
  if (route != "netplist" && route != "mil") {
    return absl::InvalidArgumentError(absl::StrCat("route '", route, "': want netplist or mil"));
  }
  options.route = route == "mil" ? Route::kMil : Route::kNetplist;
  ANEMONE_ASSIGN_OR_RETURN(options.policy, Policy::Parse(policy));
  return options;
}

std::vector<std::string> ExpandTargets(const std::vector<std::string>& names) {
  std::vector<std::string> expanded;
  for (const std::string& name : names) {
    if (absl::AsciiStrToLower(name) != "all") {
      expanded.push_back(name);
      continue;
    }
    for (const Target& target : AllTargets()) expanded.emplace_back(target.option_name());
  }
  return expanded;
}

}  // namespace anemone
