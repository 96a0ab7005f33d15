// Plans: every origin is in one entry, segments are convex and few, refusals have a layer and a
// message.
#include "partitioner/plan.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/wrapped_text.h"
#include "engine/target_names.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "tests/partitioner/plans.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

// Segments can run in their order: all inputs of one are computed before it.
void ExpectRunnable(const Model& model, const Plan& plan) {
  std::set<ValueId> made(model.graph.inputs.begin(), model.graph.inputs.end());
  for (const Segment& segment : plan.segments) {
    for (ValueId v : segment.inputs) {
      EXPECT_TRUE(made.count(v) > 0) << model.graph.values[v].name;
    }
    made.insert(segment.outputs.begin(), segment.outputs.end());
  }
  for (ValueId v : model.graph.outputs) {
    EXPECT_TRUE(made.count(v) > 0 || model.graph.values[v].constant);
  }
}

// Warnings about patterns that did not become one unit.
std::vector<std::string> MissedOf(const std::string& text) {
  std::vector<std::string> messages;
  for (const PlanWarning& w : PlanOf(ModelOf(text)).warnings) {
    if (w.rule == "pattern-not-taken") messages.push_back(w.node + ": " + w.message);
  }
  return messages;
}

TEST(Plan, SaysWhyAPatternIsNoUnit) {
  using testing::AllOf;
  using testing::ElementsAre;
  EXPECT_THAT(MissedOf("(float[1,2,600,8] q, float[1,2,8,600] k, float[1,2,600,8] v) => "
                       "(float[1,2,600,8] y) { s = MatMul(q, k) p = Softmax<axis = -1>(s) "
                       "y = MatMul(p, v) }"),
              ElementsAre(AllOf(HasSubstr("/#2: attention pattern recognized"),
                                HasSubstr("of this length"))));
  EXPECT_THAT(MissedOf("(float[1,4,6,8] a, float[1,4,6,9] b) => (float[1,2,6,8] y) "
                       "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] eight = {8}, "
                       "int64[1] nine = {9}, int64[1] three = {3}> "
                       "{ l = Slice(b, zero, eight, three) r = Slice(b, one, nine, three) "
                       "m = Mul(a, l) n = Mul(a, r) c = ReduceMean(m, one) d = ReduceMean(n, one) "
                       "y = Concat<axis = 1>(c, d) }"),
              ElementsAre(HasSubstr(
                  "correlation-by-pixel pattern recognized but not fused on this target")));
  EXPECT_THAT(MissedOf("(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Relu(x) }"), ElementsAre());
}

constexpr char kThreePieces[] =
    "(float[1,4,8,8] x) => (float[1,4,4,4] y) { a = Relu(x) "
    "b = MaxPool<kernel_shape = [2,2], strides = [2,2]>(a) y = Tanh(b) }";

TEST(Plan, TakesAllInOneSegmentIfItCan) {
  Model model = ModelOf(kThreePieces);
  Plan plan = PlanOf(model);
  EXPECT_EQ(plan.engine_segments(), 1);
  EXPECT_EQ(plan.cpu_segments(), 0);
  ExpectCovered(model, plan);
  ExpectRunnable(model, plan);
}

TEST(Plan, ARefusedUnitCutsTheModel) {
  Model model = ModelOf(kThreePieces);
  Plan plan = PlanOf(model, {.policy = "refuse:Pooling"});
  EXPECT_EQ(plan.engine_segments(), 2);
  EXPECT_EQ(plan.cpu_segments(), 1);
  ExpectCovered(model, plan);
  ExpectRunnable(model, plan);
  const PlanEntry& pool = plan.entries[1];
  EXPECT_EQ(pool.placement, Placement::kCpu);
  EXPECT_EQ(pool.verdict.layer, Layer::kPolicy);
  Json json = PlanJson(model, plan);
  EXPECT_EQ(json["nodes"][1]["verdict"], "native");  // the target would accept it
  EXPECT_EQ(json["nodes"][1]["layer"], "policy");
}

TEST(Plan, ARefusedNodeIsFoundByItsIdAndByItsOutput) {
  Model model = ModelOf("(float[4] x) => (float[4] y) { a = Relu(x) b = Exp(a) y = Tanh(b) }");
  for (const char* policy : {"refuse:node:/#1", "refuse:node:b", "refuse:Pooling,node:b"}) {
    Plan plan = PlanOf(model, {.policy = policy, .bodies = true});
    ExpectCovered(model, plan);
    ExpectRunnable(model, plan);
    EXPECT_EQ(plan.engine_segments(), 2) << policy;
    EXPECT_EQ(plan.entries[1].placement, Placement::kCpu) << policy;
    EXPECT_EQ(plan.entries[1].verdict.rule_id(), "refused-node") << policy;
  }
  EXPECT_THAT(MakePlan(model, {.target = *FindTarget("h13"),
                               .policy = *Policy::Parse("refuse:node:c"),
                               .bodies = true}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no such node")));
  EXPECT_THAT(Policy::Parse("refuse:node:"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want a node")));
}

TEST(Plan, APolicyCanKeepAllOnTheCpu) {
  Plan plan = PlanOf(ModelOf(kThreePieces), {.policy = "cpu"});
  EXPECT_EQ(plan.engine_segments(), 0);
  EXPECT_EQ(plan.cpu_segments(), 1);
}

TEST(Plan, AnUnknownPolicyNamesTheKnownOnes) {
  EXPECT_THAT(Policy::Parse("most"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("refuse:UNIT")));
  EXPECT_THAT(Policy::Parse("refuse:Pool"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Pooling")));
}

TEST(Plan, SaysTheEnginesWords) {
  Model model = ModelOf("(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Softmax(x) }");
  Plan plan = PlanOf(model, {.target = "h12"});
  Json node = PlanJson(model, plan)["nodes"][0];
  EXPECT_EQ(node["verdict"], "rejected");
  EXPECT_EQ(node["layer"], "validator");
  EXPECT_EQ(node["message"], "Softmax is not supported by this ANE architecture");
  EXPECT_THAT(node["source"].get<std::string>(), HasSubstr("guide"));
  EXPECT_THAT(PlanText(model, plan, {.every_node = true}),
              HasSubstr("\"Softmax is not supported by this ANE architecture\""));
}

TEST(Plan, RankSixIsAVerdict) {
  Plan plan = PlanOf(ModelOf("(float[1,1,2,2,2,2] x) => (float[1,1,2,2,2,2] y) { y = Relu(x) }"));
  EXPECT_EQ(plan.entries[0].verdict.layer, Layer::kFrontend);
  EXPECT_EQ(plan.entries[0].verdict.message, "tensor rank 6 exceeds the ANE maximum of 5");
}

// Nodes after an unknown operator are told that it is the cause, not that their type is wrong.
TEST(Plan, AnUnknownTypeOrShapeNamesItsMaker) {
  auto verdicts = [](const std::string& declared) {
    onnx::ModelProto proto;
    const std::string text = absl::StrCat(
        "<ir_version: 10, opset_import: [\"\" : 21, \"acme\" : 1]> g (float[4] x) => (float[4] y) ",
        declared, " { a = acme.Op(x) b = Relu(a) y = Tanh(b) }");
    EXPECT_TRUE(onnx::OnnxParser(text.c_str()).Parse(proto).IsOK()) << text;
    auto model = ImportBytes(proto.SerializeAsString(), "", {});
    EXPECT_TRUE(model.ok()) << model.status();
    const Plan plan = PlanOf(*model);
    EXPECT_EQ(plan.entries.size(), 3);
    for (const PlanEntry& entry : plan.entries) {
      EXPECT_TRUE(entry.verdict.accepted || !entry.verdict.own_remedy.empty());
    }
    return std::vector<Verdict>{plan.entries[1].verdict, plan.entries[2].verdict};
  };
  for (const Verdict& verdict : verdicts("")) {
    EXPECT_EQ(verdict.rule_id(), "type-unknown");
    EXPECT_EQ(verdict.message, "type unknown: made by Op (acme)");
    EXPECT_THAT(verdict.own_remedy, HasSubstr("declare the type and shape of the outputs of Op"));
  }
  const Verdict no_shape = verdicts("<float[] a>").front();
  EXPECT_EQ(no_shape.rule_id(), "shape-unknown");
  EXPECT_EQ(no_shape.message, "shape unknown: made by Op (acme)");
  EXPECT_TRUE(verdicts("<float[4] a>").front().accepted);  // the remedy helps
}

TEST(Plan, EveryReasonHasARemedy) {
  const Model model = ModelOf(
      "(float[4] x) => (uint8[4] q, float s, uint8 z, bool[4] n, float[4] y) "
      "{ q, s, z = DynamicQuantizeLinear(x) n = IsNaN(x) y = Tan(x) }");
  for (bool rewrites : {true, false}) {
    const auto plan = MakePlan(model, {.target = *FindTarget("h13"), .rewrites = rewrites});
    ASSERT_THAT(plan, IsOk());
    for (const PlanEntry& entry : plan->entries) {
      EXPECT_TRUE(entry.verdict.accepted || !entry.verdict.own_remedy.empty())
          << entry.verdict.message;
    }
    const Verdict& tangent = plan->entries.back().verdict;
    EXPECT_EQ(tangent.accepted, rewrites);
    if (!rewrites) {
      EXPECT_EQ(tangent.own_remedy, "allow rewrites");
    }
  }
}

TEST(Plan, ASegmentOfCastsAloneIsNone) {
  const Model casts = ModelOf("(float[4,6] x) => (float16[4,6] y) { y = Cast<to = 10>(x) }");
  const Plan plan = PlanOf(casts);
  EXPECT_EQ(plan.engine_segments(), 0);
  EXPECT_EQ(plan.entries[0].verdict.rule_id(), "only-casts");
  const Plan beside =
      PlanOf(ModelOf("(float[4,6] x) => (float16[4,6] y) { a = Relu(x) y = Cast<to = 10>(a) }"));
  EXPECT_EQ(beside.engine_segments(), 1);
  EXPECT_EQ(beside.cpu_segments(), 0);
}

TEST(Plan, IntegersStayOnTheCpu) {
  Plan plan = PlanOf(ModelOf("(int64[4] x) => (int64[4] y) { y = Add(x, x) }"));
  EXPECT_EQ(plan.entries[0].verdict.layer, Layer::kCoverage);
  EXPECT_EQ(plan.entries[0].verdict.message,
            "int64 values may exceed 2048, above which fp16 cannot represent every integer");
}

// A rewrite with an error larger than fp16's rounding has a bound.
TEST(Plan, SaysHowFarARewriteIsOff) {
  Model model = ModelOf(
      "(float[4] x) => (float[4] y) <float s = {0.25}, uint16 z = {7}> "
      "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }");
  Plan plan = PlanOf(model);
  Json node = PlanJson(model, plan)["nodes"][0];
  EXPECT_EQ(node["verdict"], "rewritten");
  EXPECT_EQ(node["bound"], "0.125 (half a quantization step)");
  EXPECT_THAT(PlanText(model, plan, {.every_node = true}), HasSubstr("off by at most 0.125"));
}

// A function may import another version of a domain than its model does.
TEST(Plan, NodesOfTwoOpsetsAreNotInOneSegment) {
  onnx::ModelProto proto = ModelOfText("(float[2] x) => (float[] y) {}");
  auto import = [](auto& holder, const std::string& domain, int version) {
    auto& opset = *holder.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  };
  import(proto, "acme", 1);
  import(proto, "own", 1);
  auto add = [](auto* node, const std::string& domain, const std::string& op,
                const std::string& from, const std::string& to) {
    node->set_domain(domain);
    node->set_op_type(op);
    node->add_input(from);
    node->add_output(to);
  };
  add(proto.mutable_graph()->add_node(), "acme", "Foo", "x", "a");
  add(proto.mutable_graph()->add_node(), "", "Det", "a", "b");
  add(proto.mutable_graph()->add_node(), "own", "F", "b", "c");
  add(proto.mutable_graph()->add_node(), "", "Det", "c", "y");
  onnx::FunctionProto& f = *proto.add_functions();
  f.set_domain("own");
  f.set_name("F");
  import(f, "acme", 2);
  f.add_input("p");
  f.add_output("q");
  add(f.add_node(), "acme", "Foo", "p", "q");
  auto model = ImportBytes(proto.SerializeAsString(), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  Plan plan = PlanOf(*model);
  ExpectCovered(*model, plan);
  ExpectRunnable(*model, plan);
  ASSERT_EQ(plan.cpu_segments(), 2);
  EXPECT_EQ(plan.segments[0].nodes.size(),
            2);  // the operator between them is placed with its producer
}

// A random graph of engine operators and one that the policy refuses, with many joins.
TEST(Plan, RandomGraphsAreRunnableAndCovered) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    std::string text = "(float[1,4] x) => (float[1,4] y) { v0 = Relu(x) ";
    int count = 3 + static_cast<int>(random() % 30);
    for (int i = 1; i < count; ++i) {
      int a = static_cast<int>(random() % i);
      int b = static_cast<int>(random() % i);
      switch (random() % 3) {
        case 0:
          absl::StrAppend(&text, "v", i, " = Softmax(v", a, ") ");
          break;
        case 1:
          absl::StrAppend(&text, "v", i, " = Add(v", a, ", v", b, ") ");
          break;
        default:
          absl::StrAppend(&text, "v", i, " = Tanh(v", a, ") ");
      }
    }
    absl::StrAppend(&text, "y = Add(v", count - 1, ", v", count / 2, ") }");
    Model model = ModelOf(text);
    Plan plan = PlanOf(model, {.policy = "refuse:Softmax"});
    ExpectCovered(model, plan);
    ExpectRunnable(model, plan);
  }
}

TEST(Plan, MacsOfUnknownSizesAreUnknown) {
  const Model model = ModelOf(
      "(float[4,8] x, float[8,n] k) => (float[4,8] y, float[4,n] s) <float[8,8] w> "
      "{ y = MatMul(x, w) s = MatMul(x, k) }");
  const Plan plan = PlanOf(model);
  EXPECT_EQ(plan.macs(), std::nullopt);
  EXPECT_EQ(plan.engine_macs(), 4 * 8 * 8);
  EXPECT_EQ(plan.engine_macs_share(), std::nullopt);
  EXPECT_EQ(plan.nodes_of_unknown_macs(), 1);
  EXPECT_EQ(PlanLine(model, plan), "M1: cannot tell the share yet: 1 dimension is free");
  EXPECT_THAT(WhyShareUnknown(model, plan), HasSubstr("give --dim n=1"));
}

TEST(Plan, TheFirstLineFitsForEveryTarget) {
  for (const char* text : {"(float[1,8] x) => (float[1,8] y) { y = Softmax(x) }",
                           "(float[4,8] x) => (float[4,8] y) <float[8,8] w> "
                           "{ y = MatMul(x, w) }",
                           "(float[m,8] x) => (float[m,8] y) <float[8,8] w> "
                           "{ y = MatMul(x, w) }"}) {
    const Model model = ModelOf(text);
    for (const Target& target : AllTargets()) {
      const std::string line =
          PlanLine(model, PlanOf(model, {.target = std::string(target.option_name())}));
      EXPECT_LE(Columns(line), 80) << line;
      EXPECT_THAT(line, testing::StartsWith(TargetLabel(target) + ": "));
    }
  }
}

TEST(Plan, SharesAreRoundedButNotToAllOrNothing) {
  EXPECT_EQ(PercentText(1), "100 %");
  EXPECT_EQ(PercentText(0.99999), "99.9 %");
  EXPECT_EQ(PercentText(0.973), "97.3 %");
  EXPECT_EQ(PercentText(0.5), "50 %");
  EXPECT_EQ(PercentText(0.00001), "0.1 %");
  EXPECT_EQ(PercentText(0), "0 %");
}

TEST(Plan, ShortCountsAreShort) {
  EXPECT_EQ(ShortCount(999), "999");
  EXPECT_EQ(ShortCount(1234), "1.23 k");
  EXPECT_EQ(ShortCount(1820000000), "1.82 G");
  EXPECT_EQ(ShortCount(999999), "1.00 M");
}

}  // namespace
}  // namespace anemone
