// What a change would bring: segments are those of a plan in which the nodes are on the engine, and
// a bound of the time is never below what such a plan saves.
#include "partitioner/plan_advice.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>

#include "partitioner/plan_costs.h"
#include "partitioner/policies.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

constexpr char kWithCpuRates[] = "h17s";

// v1 = Relu(v0), v2 = Sigmoid(v1), ...
std::string Chain(int nodes) {
  std::string text = "(float[1,8,16,16] v0) => (float[1,8,16,16] v" + std::to_string(nodes) + ") {";
  for (int i = 0; i < nodes; ++i) {
    text += " v" + std::to_string(i + 1) + (i % 2 == 0 ? " = Relu(v" : " = Sigmoid(v") +
            std::to_string(i) + ")";
  }
  return text + " }";
}

TEST(PlanAdvice, NothingToChange) {
  const Model model = ModelOf(Chain(3));
  const PlanAdvice advice = AdviceOf(model, PlanOf(model));
  EXPECT_TRUE(advice.items.empty());
  EXPECT_EQ(advice.all.nodes, 0);
  EXPECT_EQ(advice.all.segments, 1);
}

TEST(PlanAdvice, AcceptedNodesJoinSegments) {
  const Model model = ModelOf(Chain(7));
  const Plan whole = PlanOf(model, {.target = kWithCpuRates});
  const Plan plan = PlanOf(model, {.target = kWithCpuRates, .policy = "refuse:node:v2,node:v4"});
  ASSERT_EQ(plan.engine_segments(), 3);
  const PlanAdvice advice = AdviceOf(model, plan);
  ASSERT_FALSE(advice.items.empty());
  EXPECT_EQ(advice.all.nodes, 2);
  EXPECT_EQ(advice.all.segments, whole.engine_segments());
  EXPECT_EQ(advice.all.macs, 0);
  ASSERT_TRUE(advice.all.at_most_us);
  EXPECT_GE(*advice.all.at_most_us, *plan.costs->estimate_us - *whole.costs->estimate_us - 1e-9);
  EXPECT_LE(*advice.all.at_most_us, *plan.costs->estimate_us);
}

TEST(PlanAdvice, WhatThePolicyLatencyGaveUpIsNoGain) {
  const Model model = ModelOf(
      "(float[1,8,4,4] x) => (float[1,8,4,4] y) <float[8,8,1,1] w> { a = Conv(x, w) "
      "y = Bernoulli(a) }");
  const Plan plan = PlanOf(model, {.target = kWithCpuRates, .policy = "latency"});
  ASSERT_EQ(plan.engine_segments(), 0);
  const PlanAdvice advice = AdviceOf(model, plan);
  const auto item = std::find_if(
      advice.items.begin(), advice.items.end(),
      [](const Advice& advised) { return advised.reason.verdict->rule_id() == kLatencyRule; });
  ASSERT_NE(item, advice.items.end());
  EXPECT_EQ(item->gain.at_most_us, std::nullopt);
}

// A graph of random elementwise operators, each with one or two of the values before it as inputs.
std::string Random(std::mt19937& random, int nodes) {
  std::string text = "(float[1,8,16,16] v0) => (float[1,8,16,16] v" + std::to_string(nodes) + ") {";
  for (int i = 0; i < nodes; ++i) {
    const auto value = [&](int v) { return "v" + std::to_string(v); };
    const int other = i - static_cast<int>(random() % std::min(i + 1, 9));
    text += " " + value(i + 1) + " = ";
    text += random() % 2 == 0 ? "Add(" + value(i) + ", " + value(other) + ")"
                              : "Relu(" + value(i) + ")";
  }
  return text + " }";
}

// If the engine took all that a policy refuses, the plan is that without the policy.
TEST(PlanAdvice, SegmentsAndBoundHoldForRandomGraphs) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    const int nodes = 5 + static_cast<int>(random() % 60);
    const Model model = ModelOf(Random(random, nodes));
    std::string refused;
    for (int i = 1; i < nodes; ++i) {
      if (random() % 5 == 0)
        refused += (refused.empty() ? "node:v" : ",node:v") + std::to_string(i);
    }
    if (refused.empty()) continue;
    const Plan whole = PlanOf(model, {.target = kWithCpuRates});
    const Plan plan = PlanOf(model, {.target = kWithCpuRates, .policy = "refuse:" + refused});
    const PlanAdvice advice = AdviceOf(model, plan);
    SCOPED_TRACE(refused);
    EXPECT_EQ(advice.all.segments, whole.engine_segments());
    const double saved = *plan.costs->estimate_us - *whole.costs->estimate_us;
    EXPECT_GE(*advice.all.at_most_us, saved - 1e-6);
    EXPECT_LE(*advice.all.at_most_us, *plan.costs->estimate_us);
  }
}

TEST(PlanAdvice, WithoutRatesOfTheCpuOnlyDispatchesAreTimed) {
  const Model model = ModelOf(Chain(5));
  const Plan plan = PlanOf(model, {.target = "h13", .policy = "refuse:node:v2"});
  const PlanGain gain = AdviceOf(model, plan).all;
  EXPECT_FALSE(gain.at_most_us);
  EXPECT_EQ(gain.dispatch_us, plan.costs->rates->dispatch_us);  // two segments become one
}

TEST(PlanAdvice, TargetsWithoutRatesHaveNoTimes) {
  const Model model = ModelOf(Chain(5));
  const PlanGain gain = AdviceOf(model, PlanOf(model, {.target = "h15", .policy = "cpu"})).all;
  EXPECT_FALSE(gain.at_most_us);
  EXPECT_FALSE(gain.dispatch_us);
  EXPECT_EQ(gain.segments, 1);
}

}  // namespace
}  // namespace anemone
