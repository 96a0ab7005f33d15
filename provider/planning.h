// provider/planning.h: a user's words as planning options.
#ifndef ANEMONE_PROVIDER_PLANNING_H_
#define ANEMONE_PROVIDER_PLANNING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "partitioner/plan.h"

namespace anemone {

// Errors: kNotFound (no such target, with near names), kInvalidArgument (route, policy).
absl::StatusOr<PlanOptions> PlanningOptions(const std::string& target, const std::string& route,
                                            const std::string& policy, bool rewrites);

// Target names with "all" spelled out.
std::vector<std::string> ExpandTargets(const std::vector<std::string>& names);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLANNING_H_
