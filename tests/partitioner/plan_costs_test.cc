// Estimated times: those of single operations follow from the rates of the table, and a target
// without rates has none. docs/costs.md compares estimates with published times.
#include "partitioner/plan_costs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernels/lowering.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kConv[] =
    "(float[1,256,28,28] x) => (float[1,256,28,28] y) <float[256,256,3,3] w> "
    "{ y = Conv<pads = [1,1,1,1]>(x, w) }";
constexpr char kTwoConvs[] =
    "(float[1,64,32,32] x) => (float[1,64,32,32] y) <float[64,64,1,1] w, float[64,64,1,1] v> "
    "{ h = Conv(x, w) y = Conv(h, v) }";
constexpr double kMicro = 1e6;

double Flops(double macs) { return 2 * macs; }

TEST(PlanCosts, OneConvolutionTakesItsArithmeticAndADispatch) {
  const Model model = ModelOf(kConv);
  const Plan plan = PlanOf(model);
  const PlanCosts costs = *plan.costs;
  ASSERT_NE(costs.rates, nullptr);
  const double compute = Flops(256.0 * 256 * 9 * 28 * 28) / costs.rates->flops * kMicro;
  ASSERT_EQ(costs.of_entries.size(), 1);
  EXPECT_NEAR(costs.of_entries.begin()->second.us, compute, 1e-6);
  EXPECT_EQ(costs.of_entries.begin()->second.limit, CostLimit::kCompute);
  EXPECT_NEAR(*costs.estimate_us, compute + costs.rates->dispatch_us, 1e-6);
  EXPECT_EQ(costs.of_segments.at(0).us, *costs.estimate_us);
}

TEST(PlanCosts, ValuesWithinTheWorkingSetDoNotLeaveTheChip) {
  const Model model = ModelOf(kTwoConvs);
  const Plan plan = PlanOf(model);
  const PlanCosts costs = *plan.costs;
  ASSERT_EQ(costs.of_entries.size(), 2);
  // The first reads the input and its weights, the second its weights and the output: the value
  // between them is not counted.
  const double first = 64 * 32 * 32 * 2 + 64 * 64 * 2;
  const double second = 64 * 64 * 2 + 64 * 32 * 32 * 2;
  std::vector<double> us;
  for (const auto& [origin, cost] : costs.of_entries) {
    us.push_back(cost.us);
    EXPECT_EQ(cost.limit, CostLimit::kTransfer);
  }
  EXPECT_NEAR(us[0], first / costs.rates->bytes_per_second * kMicro, 1e-6);
  EXPECT_NEAR(us[1], second / costs.rates->bytes_per_second * kMicro, 1e-6);
  EXPECT_EQ(costs.of_segments.at(0).limit, CostLimit::kDispatch);
  EXPECT_THAT(PlanText(model, plan, {}), HasSubstr("1 dispatch is 0.23 ms of it"));
}

TEST(PlanCosts, OnlyTheLongestUnitOfAChainWorksAlone) {
  const Model model = ModelOf(
      "(float[1,256,28,28] x) => (float[1,256,28,28] y) <float[256,256,3,3] w, float[256,256,3,3] "
      "v> "
      "{ h = Conv<pads = [1,1,1,1]>(x, w) y = Conv<pads = [1,1,1,1]>(h, v) }");
  const PlanCosts costs = *PlanOf(model, {.target = "h17s"}).costs;
  const double flops = Flops(256.0 * 256 * 9 * 28 * 28);
  EXPECT_NEAR(*costs.estimate_us,
              (flops / costs.rates->flops + flops / costs.rates->chain_flops) * kMicro +
                  costs.rates->dispatch_us,
              1e-6);
}

TEST(PlanCosts, ATargetWithoutRatesHasNoEstimate) {
  const Model model = ModelOf(kConv);
  const Plan plan = PlanOf(model, {.target = "h15"});
  const PlanCosts costs = *plan.costs;
  EXPECT_EQ(costs.rates, nullptr);
  const Json json = PlanJson(model, plan);
  EXPECT_TRUE(json["summary"]["estimate_us"].is_null());
  EXPECT_TRUE(json["nodes"][0]["cost"].is_null());
  EXPECT_TRUE(json["segments"][0]["cost"].is_null());
  EXPECT_THAT(PlanText(model, plan, {}), Not(HasSubstr("a run")));
}

// The rates of the CPU are published for h17s only.
TEST(PlanCosts, CpuNodesHaveATimeWhereTheCpuHasRates) {
  const Model model = ModelOf(kTwoConvs);
  for (const char* target : {"h13", "h17s"}) {
    const bool known = std::string(target) == "h17s";
    const PlanCosts costs = *PlanOf(model, {.target = target, .policy = "refuse:Conv"}).costs;
    EXPECT_EQ(costs.estimate_us.has_value(), known) << target;
    EXPECT_EQ(costs.cpu_us, costs.estimate_us);
  }
  const Plan plan = PlanOf(model, {.target = "h17s"});
  EXPECT_LT(*plan.costs->cpu_us, *plan.costs->estimate_us);
  EXPECT_THAT(PlanText(model, plan, {}), HasSubstr("needs 0.01 ms"));
}

// Only the engine's time is known.
TEST(PlanCosts, TheTextSaysWhatTheEstimateLeavesOut) {
  const Model model = ModelOf(
      "(float[1,64,32,32] x) => (float[1,64,32,32] y) <float[64,64,3,3] w> "
      "{ h = Conv<pads = [1,1,1,1]>(x, w) y = Erf(h) }");
  EXPECT_THAT(PlanText(model, PlanOf(model, {.policy = "refuse:Neuron"}), {}),
              HasSubstr("a run for the engine's part"));
}

// A kind whose arithmetic is a sum of products says how many.
TEST(PlanCosts, EveryContractionCountsItsWork) {
  std::set<std::string> counted;
  for (const std::string& type : UnitTypes()) {
    if (FindUnitKind(type)->macs) counted.insert(type);
  }
  EXPECT_THAT(counted, testing::ElementsAre("Conv", "CrossCorrelation", "Linear",
                                            "MatrixMultiplication", "SDPA"));
}

}  // namespace
}  // namespace anemone
