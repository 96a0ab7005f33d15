// Estimated times: those of single operations follow from the rates of the table, and a target
// without rates has none. docs/costs.md compares estimates with published times.
#include "partitioner/plan_costs.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
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

// Microseconds.
double TimeOf(double amount, double per_second) { return amount / per_second * kMicro; }

TEST(PlanCosts, OneConvolutionTakesItsArithmeticItsPortsAndADispatch) {
  const Model model = ModelOf(kConv);
  const Plan plan = PlanOf(model);
  const PlanCosts costs = *plan.costs;
  ASSERT_NE(costs.rates, nullptr);
  const double compute = TimeOf(Flops(256.0 * 256 * 9 * 28 * 28), costs.rates->flops);
  const double ports = TimeOf(2.0 * 256 * 28 * 28 * 2, costs.rates->port_bytes_per_second);
  ASSERT_EQ(costs.of_entries.size(), 1);
  EXPECT_NEAR(costs.of_entries.begin()->second.us, compute + ports, 1e-6);
  EXPECT_EQ(costs.of_entries.begin()->second.limit, CostLimit::kCompute);
  EXPECT_NEAR(*costs.estimate_us, compute + ports + costs.rates->dispatch_us, 1e-6);
  EXPECT_EQ(costs.of_segments.at(0).us, *costs.estimate_us);
  EXPECT_NEAR(costs.transfer_us, ports, 1e-6);
}

TEST(PlanCosts, AValueMayBeNamedAsAUnitOfAnotherNode) {
  onnx::ModelProto proto = ModelOfText(kTwoConvs, 21);
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.mutable_output(0)->set_name("h#2");
  graph.mutable_node(1)->set_output(0, "h#2");
  std::mt19937 random(3);
  FillDeclared(graph, -1, 1, random);
  const auto model = ImportBytes(proto.SerializeAsString(), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(PlanOf(*model).costs->of_entries.size(), 2);
}

TEST(PlanCosts, ValuesWithinTheWorkingSetDoNotLeaveTheChip) {
  const Model model = ModelOf(kTwoConvs);
  const Plan plan = PlanOf(model);
  const PlanCosts costs = *plan.costs;
  ASSERT_EQ(costs.of_entries.size(), 2);
  // The first reads the input, the second writes the output: the value between them is not counted.
  const double port = TimeOf(64 * 32 * 32 * 2, costs.rates->port_bytes_per_second);
  const double work = Flops(64.0 * 64 * 32 * 32);
  const double weights = TimeOf(64 * 64 * 2, costs.rates->bytes_per_second);
  std::vector<double> us;
  for (const auto& [origin, cost] : costs.of_entries) {
    us.push_back(cost.us);
    EXPECT_EQ(cost.limit, CostLimit::kTransfer);
  }
  EXPECT_NEAR(us[0], port + TimeOf(work, costs.rates->flops), 1e-6);
  EXPECT_NEAR(us[1], port + std::max(TimeOf(work, costs.rates->chain_flops), weights), 1e-6);
  EXPECT_EQ(costs.of_segments.at(0).limit, CostLimit::kDispatch);
  EXPECT_THAT(PlanText(model, plan, {}), HasSubstr("1 dispatch is 230 us of it"));
}

TEST(PlanCosts, OnlyTheLongestUnitOfAChainWorksAlone) {
  const Model model = ModelOf(
      "(float[1,256,28,28] x) => (float[1,256,28,28] y) <float[256,256,3,3] w, float[256,256,3,3] "
      "v> "
      "{ h = Conv<pads = [1,1,1,1]>(x, w) y = Conv<pads = [1,1,1,1]>(h, v) }");
  const PlanCosts costs = *PlanOf(model, {.target = "h17s"}).costs;
  const double flops = Flops(256.0 * 256 * 9 * 28 * 28);
  EXPECT_NEAR(*costs.estimate_us - costs.transfer_us,
              TimeOf(flops, costs.rates->flops) + TimeOf(flops, costs.rates->chain_flops) +
                  costs.rates->dispatch_us,
              1e-6);
}

// The weights of a matrix product stream at a rate of their own.
TEST(PlanCosts, AMatrixProductWithOneRowTakesItsWeights) {
  const Model model =
      ModelOf("(float[1,2048] x) => (float[1,2048] y) <float[2048,2048] w> { y = MatMul(x, w) }");
  const PlanCosts costs = *PlanOf(model).costs;
  const double weights = TimeOf(2048.0 * 2048 * 2, costs.rates->stream_bytes_per_second);
  EXPECT_NEAR(*costs.estimate_us - costs.transfer_us, weights + costs.rates->dispatch_us, 1e-6);
  EXPECT_EQ(costs.of_entries.begin()->second.limit, CostLimit::kBandwidth);
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

// The rates of the CPU are published for h16g and h17s only.
TEST(PlanCosts, CpuNodesHaveATimeWhereTheCpuHasRates) {
  const Model model = ModelOf(kTwoConvs);
  for (const char* target : {"h13", "h16", "h16g", "h17s"}) {
    const bool known = std::string(target) == "h17s" || std::string(target) == "h16g";
    const PlanCosts costs = *PlanOf(model, {.target = target, .policy = "refuse:Conv"}).costs;
    EXPECT_EQ(costs.estimate_us.has_value(), known) << target;
    EXPECT_EQ(costs.cpu_us, costs.estimate_us);
  }
  const Plan plan = PlanOf(model, {.target = "h17s"});
  EXPECT_LT(*plan.costs->cpu_us, *plan.costs->estimate_us);
  EXPECT_THAT(PlanText(model, plan, {}), HasSubstr("needs " + TimeText(*plan.costs->cpu_us)));
}

// A softmax has a rate of its own on the CPU; a body counts once.
TEST(PlanCosts, TheCpuHasARateForSoftmax) {
  const CpuRates rates = FindCostRates(**FindTarget("h16g"))->cpu;
  const Model softmax =
      ModelOf("(float[1,64,32,32] x) => (float[1,64,32,32] y) { y = Softmax<axis = 1>(x) }");
  EXPECT_NEAR(*PlanOf(softmax, {.target = "h16g"}).costs->cpu_us,
              TimeOf(64 * 32 * 32, rates.softmax_per_second), 1e-6);
  const Model relu = ModelOf("(float[1,64,32,32] x) => (float[1,64,32,32] y) { y = Relu(x) }");
  EXPECT_NEAR(*PlanOf(relu, {.target = "h16g"}).costs->cpu_us,
              TimeOf(2 * 64 * 32 * 32 * 4, rates.bytes_per_second), 1e-6);
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
