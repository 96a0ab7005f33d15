#include "partitioner/cost_warnings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "partitioner/plan_costs.h"

namespace anemone {
namespace {

constexpr char kPlace[] = "plan";

// "3 segments with 14 us of work cost 330 us of dispatches and 21 us of transfers"
std::string SplitText(const PlanCosts& costs) {
  double engine_us = 0;
  for (const auto& [number, cost] : costs.of_segments) engine_us += cost.us;
  const size_t count = costs.of_segments.size();
  const double dispatch_us = static_cast<double>(count) * costs.rates->dispatch_us;
  return absl::StrCat(count, count == 1 ? " segment with " : " segments with ",
                      TimeText(engine_us - dispatch_us - costs.transfer_us), " of work ",
                      count == 1 ? "costs " : "cost ", TimeText(dispatch_us), " of dispatches and ",
                      TimeText(costs.transfer_us), " of transfers");
}

}  // namespace

void AddCostWarnings(const Policy& policy, Plan& plan) {
  const PlanCosts& costs = *plan.costs;
  const char* source = costs.rates == nullptr ? "" : costs.rates->source;
  const bool has_cpu_rates = costs.rates != nullptr && costs.rates->cpu.are_known();
  if (policy.aim == Policy::Aim::kLatency && !has_cpu_rates) {
    plan.warnings.push_back({kNoCpuRates, kPlace,
                             "no rates of this chip's CPU are published, so the policy latency "
                             "gives it nothing: the plan is that of max-engine",
                             "no action needed; docs/costs.md lists the targets with rates",
                             source});
  }
  if (costs.of_segments.empty() || !costs.cpu_us || !costs.estimate_us) return;
  if (*costs.cpu_us >= *costs.estimate_us) return;
  plan.warnings.push_back(
      {kSlowerThanCpu, kPlace,
       absl::StrCat(SplitText(costs), "; the plan takes ", TimeText(*costs.estimate_us),
                    ", the chip's CPU alone ", TimeText(*costs.cpu_us)),
       "--policy latency gives the CPU what it is estimated to do faster", source});
}

}  // namespace anemone
