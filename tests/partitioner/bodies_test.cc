// Plans of bodies: numbering, reasons, MACs, and that every origin is in one entry.
#include "partitioner/bodies.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>

#include "partitioner/plan_json.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

constexpr char kBodies[] =
    "(int64 m, bool c, float[1,4] x) => (float[1,4] y, float[1,4] z) <float[4,4] w> {"
    "  a = Loop(m, c, x) <body = b (int64 i, bool ci, float[1,4] xi) => (bool co, float[1,4] xo) {"
    "    co = Identity(ci) p = MatMul(xi, w)"
    "    xo = If(ci) <then_branch = t () => (float[1,4] r) { r = MatMul(p, w) },"
    "                 else_branch = e () => (float[1,4] q) { q = Softmax(p) }> }>"
    "  y = Softmax(a) z = Relu(x) }";

TEST(Bodies, HavePlansOfTheirOwn) {
  const Model model = ModelOf(kBodies);
  const Plan plan = PlanOf(model, {.policy = "refuse:Softmax", .bodies = true});
  ExpectCovered(model, plan);
  ASSERT_EQ(PartsOf(model.graph, plan).size(), 4);
  EXPECT_EQ(plan.macs(), 32);
  EXPECT_EQ(plan.engine_macs(), 32);
  const Json json = PlanJson(model, plan);
  std::map<std::string, std::string> rules;
  std::set<int> segments;
  for (const Json& node : json["nodes"]) {
    if (node["placement"] == "cpu") rules[node["id"]] = node["rule"];
    if (node["placement"] != "folded") segments.insert(node["segment"].get<int>());
  }
  EXPECT_THAT(rules,
              testing::ElementsAre(
                  testing::Pair("/#0", "body-run-by-anemone"), testing::Pair("/#1", "refused-unit"),
                  testing::Pair("/body:Loop_0/#2", "body-run-by-anemone"),
                  testing::Pair("/body:Loop_0/else_branch:If_2/#0", "refused-unit")));
  ASSERT_EQ(segments.size(), json["segments"].size());
  EXPECT_EQ(*segments.rbegin() + 1, json["segments"].size());
  // Neither the Softmax after the Loop nor the If shares its segment.
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const Segment& segment : part.plan->segments) {
      EXPECT_TRUE(segment.bodies.empty() || segment.nodes.size() == 1);
    }
  }
}

TEST(Bodies, AreNotPlannedUnlessAsked) {
  const Model model = ModelOf(kBodies);
  const Plan plan = PlanOf(model);
  ExpectCovered(model, plan);
  EXPECT_EQ(PartsOf(model.graph, plan).size(), 1);
  EXPECT_EQ(plan.macs(), 0);
}

TEST(Bodies, CountInTheSumOfMacsOnTheCpuToo) {
  const Plan plan = PlanOf(ModelOf(kBodies), {.policy = "cpu", .bodies = true});
  EXPECT_EQ(plan.macs(), 32);
  EXPECT_EQ(plan.engine_macs(), 0);
}

// 300 iterations are not unrolled, but their number is known.
TEST(Bodies, MacsCountForEachKnownIteration) {
  const Model model = ModelOf(
      "(float[300,1,4] x, float[1,4] s, float[4,4] w) => (float[1,4] f, float[300,1,4] y) {"
      "  f, y = Scan(s, x) <num_scan_inputs = 1, body = b (float[1,4] si, float[1,4] xi)"
      "    => (float[1,4] so, float[1,4] yo) { so = Add(si, xi) yo = MatMul(xi, w) }> }");
  EXPECT_EQ(PlanOf(model, {.bodies = true}).macs(), 300 * 16);
}

// Scan-8 becomes a Scan in a Scan, and both have its origin.
TEST(Bodies, OfTwoNodesWithOneOriginAreCoveredOnce) {
  const Model model = ModelOf(
      "(float[2,300,3] x, float[2,3] s) => (float[2,3] f, float[2,300,3] y) {"
      "  f, y = Scan<num_scan_inputs = 1, body = b (float[3] si, float[3] xi)"
      "    => (float[3] so, float[3] yo) { so = Add(si, xi) yo = Tanh(so) }>(\"\", s, x) }",
      8);
  const Plan plan = PlanOf(model, {.bodies = true});
  ExpectCovered(model, plan);
  EXPECT_EQ(plan.engine_segments(), 1);
}

}  // namespace
}  // namespace anemone
