// partitioner/cost_warnings.h: warnings about the estimated time of a plan.
#ifndef ANEMONE_PARTITIONER_COST_WARNINGS_H_
#define ANEMONE_PARTITIONER_COST_WARNINGS_H_

#include "partitioner/plan.h"

namespace anemone {

// The plan takes longer than the chip's CPU alone would.
inline constexpr char kSlowerThanCpu[] = "slower-than-cpu";
// The policy `latency` gives nothing to a CPU whose rates are not published.
inline constexpr char kNoCpuRates[] = "no-cpu-rates";

// Adds these warnings to a plan that has costs.
void AddCostWarnings(const Policy& policy, Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_COST_WARNINGS_H_
