// The policies `latency` and `fewest-segments`: what they give to the CPU, that the estimate is
// never above those of `max-engine` and `cpu`, and that plans stay valid and the same.
#include "partitioner/policies.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "partitioner/cost_warnings.h"
#include "partitioner/plan_costs.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "Conv engine", of each entry that is not folded.
std::vector<std::string> PlacesOf(const Model& model, const Plan& plan) {
  std::vector<std::string> places;
  for (const PlanEntry& entry : plan.entries) {
    if (entry.placement == Placement::kFolded) continue;
    places.push_back(
        absl::StrCat(model.origins[entry.shown].op_type, " ", PlacementName(entry.placement)));
  }
  return places;
}

std::vector<std::string> MessagesOf(const Plan& plan, absl::string_view rule) {
  std::vector<std::string> messages;
  for (const PlanWarning& warning : plan.warnings) {
    if (warning.rule == rule) messages.push_back(warning.message);
  }
  return messages;
}

// Every segment reads only what earlier ones have made, and each node is in one.
void ExpectComplete(const Model& model, const Plan& plan) {
  std::set<ValueId> made(model.graph.inputs.begin(), model.graph.inputs.end());
  size_t nodes = 0;
  for (const Segment& segment : plan.segments) {
    for (ValueId input : segment.inputs) EXPECT_TRUE(made.count(input)) << input;
    made.insert(segment.outputs.begin(), segment.outputs.end());
    nodes += segment.nodes.size();
  }
  EXPECT_EQ(nodes, model.graph.nodes.size());
}

// A pool over a large input, for which the transfer costs more than the CPU's work, and two large
// convolutions, for which the engine is faster.
constexpr char kPoolAndConvs[] =
    "(float[1,64,256,256] x) => (float[1,512,32,32] y) "
    "<float[512,64,3,3] w, float[512,512,3,3] v> "
    "{ p = AveragePool<kernel_shape = [8,8], strides = [8,8]>(x) "
    "h = Conv<pads = [1,1,1,1]>(p, w) y = Conv<pads = [1,1,1,1]>(h, v) }";

constexpr char kSmall[] =
    "(float[1,8,4,4] x) => (float[1,8,4,4] y) <float[8,8,1,1] w> "
    "{ a = Relu(x) b = Bernoulli(a) c = Conv(b, w) d = Bernoulli(c) y = Relu(d) }";

TEST(Policies, NamesAreParsed) {
  EXPECT_EQ(Policy::Parse("max-engine")->aim, Policy::Aim::kMaxEngine);
  EXPECT_EQ(Policy::Parse("maximal")->aim, Policy::Aim::kMaxEngine);
  EXPECT_EQ(Policy::Parse("latency")->aim, Policy::Aim::kLatency);
  EXPECT_EQ(Policy::Parse("fewest-segments")->aim, Policy::Aim::kFewestSegments);
}

TEST(Policies, LatencyGivesUpASegmentThatTheCpuRunsFaster) {
  const Model model = ModelOf(kSmall);
  const Plan most = PlanOf(model, {.target = "h17s"});
  EXPECT_THAT(PlacesOf(model, most), ElementsAre("Relu engine", "Bernoulli cpu", "Conv engine",
                                                 "Bernoulli cpu", "Relu engine"));
  const Plan plan = PlanOf(model, {.target = "h17s", .policy = "latency"});
  EXPECT_EQ(plan.engine_segments(), 0);
  EXPECT_EQ(plan.costs->estimate_us, most.costs->cpu_us);
  const Verdict& verdict = plan.entries[2].verdict;
  EXPECT_EQ(verdict.layer, Layer::kPolicy);
  EXPECT_EQ(verdict.rule_id(), "latency");
  EXPECT_THAT(verdict.message, HasSubstr("the chip's CPU"));
  ExpectComplete(model, plan);
  ExpectCovered(model, plan);
}

TEST(Policies, LatencyKeepsWhatTheEngineRunsFasterAndGivesUpTheStart) {
  const Model model = ModelOf(kPoolAndConvs);
  const Plan plan = PlanOf(model, {.target = "h17s", .policy = "latency"});
  EXPECT_THAT(PlacesOf(model, plan), ElementsAre("AveragePool cpu", "Conv engine", "Conv engine"));
  EXPECT_LT(*plan.costs->estimate_us, *PlanOf(model, {.target = "h17s"}).costs->estimate_us);
  EXPECT_LT(*plan.costs->estimate_us, *plan.costs->cpu_us);
  ExpectComplete(model, plan);
}

// The published case: a large softmax is much slower on the CPU.
TEST(Policies, LatencyKeepsALargeSoftmaxOnTheEngine) {
  const Model model =
      ModelOf("(float[1,32000,1,256] x) => (float[1,32000,1,256] y) { y = Softmax<axis = 1>(x) }");
  for (const char* target : {"h16g", "h17s"}) {
    const Plan plan = PlanOf(model, {.target = target, .policy = "latency"});
    EXPECT_THAT(PlacesOf(model, plan), ElementsAre("Softmax engine")) << target;
    EXPECT_GT(*plan.costs->cpu_us, 30 * *plan.costs->estimate_us) << target;
  }
}

TEST(Policies, LatencyGivesNothingToACpuWithoutRates) {
  const Model model = ModelOf(kSmall);
  for (const char* target : {"h13", "h16", "h15"}) {
    const Plan most = PlanOf(model, {.target = target});
    const Plan plan = PlanOf(model, {.target = target, .policy = "latency"});
    EXPECT_EQ(PlacesOf(model, plan), PlacesOf(model, most)) << target;
    EXPECT_THAT(MessagesOf(plan, kNoCpuRates), ElementsAre(HasSubstr("that of max-engine")));
    EXPECT_THAT(MessagesOf(most, kNoCpuRates), IsEmpty());
  }
  EXPECT_THAT(MessagesOf(PlanOf(model, {.target = "h17s", .policy = "latency"}), kNoCpuRates),
              IsEmpty());
}

// All nodes that an LSTM becomes stay together.
TEST(Policies, NodesOfOneOriginStayTogether) {
  const Model model = ModelOf(
      "(float[3,1,8] x) => (float[3,1,1,8] y) <float[1,32,8] w, float[1,32,8] r> "
      "{ a = Relu(x) y, h, c = LSTM<hidden_size = 8>(a, w, r) }");
  for (const char* policy : {"latency", "fewest-segments"}) {
    const Plan plan = PlanOf(model, {.target = "h17s", .policy = policy});
    ExpectCovered(model, plan);
    ExpectComplete(model, plan);
  }
}

TEST(Policies, FewestSegmentsGivesUpSegmentsWithoutMultiplyAdds) {
  const Model model = ModelOf(kSmall);
  const Plan plan = PlanOf(model, {.policy = "fewest-segments"});
  EXPECT_THAT(PlacesOf(model, plan),
              ElementsAre("Relu cpu", "Bernoulli cpu", "Conv engine", "Bernoulli cpu", "Relu cpu"));
  EXPECT_EQ(plan.entries[0].verdict.rule_id(), "fewest-segments");
  EXPECT_EQ(plan.engine_macs(), plan.macs());
  ExpectComplete(model, plan);
  ExpectCovered(model, plan);
}

TEST(Policies, FewestSegmentsKeepsTheLargestOfAModelWithoutMultiplyAdds) {
  const Model model = ModelOf(
      "(float[1,8,4,4] x) => (float[1,8,4,4] y) "
      "{ a = Relu(x) b = Bernoulli(a) c = Relu(b) d = Sigmoid(c) e = Bernoulli(d) y = Relu(e) }");
  const Plan plan = PlanOf(model, {.policy = "fewest-segments"});
  EXPECT_THAT(PlacesOf(model, plan), ElementsAre("Relu cpu", "Bernoulli cpu", "Relu engine",
                                                 "Sigmoid engine", "Bernoulli cpu", "Relu cpu"));
}

TEST(Policies, ASplitThatLosesAgainstTheCpuIsSaidInNumbers) {
  const Model model = ModelOf(kSmall);
  const Plan plan = PlanOf(model, {.target = "h17s"});
  EXPECT_THAT(MessagesOf(plan, kSlowerThanCpu),
              ElementsAre(testing::MatchesRegex(
                  "3 segments with .* of work cost 330 us of dispatches and .* of transfers; "
                  "the plan takes 330 us, the chip's CPU alone 0\\..* us")));
  EXPECT_THAT(PlanText(model, plan, {}), HasSubstr("[slower-than-cpu] plan: 3 segments"));
  bool found = false;
  const Json json = PlanJson(model, plan);
  for (const Json& warning : json["warnings"]) found |= warning["rule"] == kSlowerThanCpu;
  EXPECT_TRUE(found);
  EXPECT_THAT(MessagesOf(PlanOf(model), kSlowerThanCpu), IsEmpty());  // the CPU is not known
  EXPECT_THAT(MessagesOf(PlanOf(ModelOf(kPoolAndConvs), {.target = "h17s"}), kSlowerThanCpu),
              IsEmpty());
}

// A random graph of operators that the engine takes, and of one that it does not.
std::string RandomGraph(std::mt19937& random) {
  std::vector<std::string> values = {"x"};
  std::vector<bool> is_read = {true};
  std::string text =
      "(float[1,64,32,32] x) => (float[1,64,32,32] y) <float[64,64,3,3] w, float[64,64,1,1] v> { ";
  const int count = 3 + static_cast<int>(random() % 20);
  for (int i = 0; i < count; ++i) {
    const auto pick = [&] {
      const size_t index = random() % 3 == 0 ? random() % values.size() : values.size() - 1;
      is_read[index] = true;
      return values[index];
    };
    const std::string name = absl::StrCat("t", i), a = pick();
    const char* const unary[] = {"Relu", "Sigmoid", "Bernoulli", "Bernoulli", "Tanh"};
    const int kind = static_cast<int>(random() % 9);
    if (kind < 5) {
      absl::StrAppend(&text, name, " = ", unary[kind], "(", a, ") ");
    } else if (kind < 7) {
      absl::StrAppend(&text, name, " = Add(", a, ", ", pick(), ") ");
    } else if (kind == 7) {
      absl::StrAppend(&text, name, " = Conv<pads = [1,1,1,1]>(", a, ", w) ");
    } else {
      absl::StrAppend(&text, name, " = Conv(", a, ", v) ");
    }
    values.push_back(name);
    is_read.push_back(false);
  }
  std::vector<std::string> ends;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_read[i]) ends.push_back(values[i]);
  }
  return absl::StrCat(text, "y = Sum(", absl::StrJoin(ends, ", "), ") }");
}

TEST(Policies, TheEstimateIsNeverAboveThoseOfTheOtherPolicies) {
  std::mt19937 random(11);
  int better = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string text = RandomGraph(random);
    SCOPED_TRACE(text);
    const Model model = ModelOf(text);
    for (const char* target : {"h16g", "h17s"}) {
      const Plan most = PlanOf(model, {.target = target});
      const Plan cpu = PlanOf(model, {.target = target, .policy = "cpu"});
      const Plan plan = PlanOf(model, {.target = target, .policy = "latency"});
      const double best = std::min(*most.costs->estimate_us, *cpu.costs->estimate_us);
      EXPECT_LE(*plan.costs->estimate_us, best + 1e-6);
      better += *plan.costs->estimate_us < best - 1e-6;
      ExpectComplete(model, plan);
      ExpectCovered(model, plan);
      const Plan again = PlanOf(model, {.target = target, .policy = "latency"});
      EXPECT_EQ(PlanJson(model, plan), PlanJson(model, again));
    }
    const Plan fewest = PlanOf(model, {.policy = "fewest-segments"});
    const Plan most = PlanOf(model);
    EXPECT_LE(fewest.engine_segments(), most.engine_segments());
    EXPECT_EQ(fewest.engine_macs(), most.engine_macs());
    ExpectComplete(model, fewest);
  }
  EXPECT_GT(better, 10);  // it is not always one of the two
}

}  // namespace
}  // namespace anemone
