#include "partitioner/planner.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/target_questions.h"
#include "partitioner/plan_json.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

struct Case {
  const char* name;
  const char* text;
};

// Lowerings, validators and the code generator answer differently by target.
const Case kCases[] = {
    {"softmax",
     "(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Relu(x) b = Softmax(a) y = Neg(b) }"},
    {"wide", "(float[1,2,1,20000] x) => (float[1,2,1,20000] y) { a = Sigmoid(x) y = Add(a, x) }"},
    {"kernel",
     "(float[1,4,64,64] x) => (float[1,8,34,34] y) <float[8,4,31,31] w> { y = Conv(x, w) }"},
    {"large matrix",
     "(float[1,40000] x) => (float[1,4] y) <float[40000,4] w> { y = MatMul(x, w) }"},
    {"sine", "(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Sin(x) y = Floor(a) }"},
    {"samples",
     "(float[1,2,8,8] x, float[1,8,8,2] g) => (float[1,2,8,8] y) { y = GridSample(x, g) }"},
    {"top",
     "(float[1,100] x) => (float[1,3] y, int64[1,3] i) { k = Constant<value = int64[1] {3}>()"
     "  y, i = TopK(x, k) }"},
    {"mirror",
     "(float[1,2,8,8] x) => (float[1,2,12,12] y) {"
     "  p = Constant<value = int64[8] {0,0,2,2,0,0,2,2}>() y = Pad<mode=\"reflect\">(x, p) }"},
    {"body",
     "(bool c, float[1,4,8,8] x) => (float[1,4,8,8] y) { y = If(c) <"
     "  then_branch = t () => (float[1,4,8,8] a) { a = Softmax(x) },"
     "  else_branch = e () => (float[1,4,8,8] b) { b = Relu(x) }> }"},
};

void ExpectTextsTogetherAreThoseAlone(const Model& model, const std::vector<Plan>& plans) {
  std::vector<const Plan*> all;
  all.reserve(plans.size());
  for (const Plan& plan : plans) all.push_back(&plan);
  const std::vector<std::string> texts = PlanJsonTexts(model, all);
  ASSERT_EQ(texts.size(), plans.size());
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], PlanJsonText(model, plans[i]));
}

TEST(Planner, PlansOfAllTargetsAreThoseOfMakePlan) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    const Model model = ModelOf(each.text);
    PlanOptions options{.bodies = true};
    Planner planner(model, options, AllTargets().size());
    std::vector<Plan> plans;
    plans.reserve(AllTargets().size());
    for (const Target& target : AllTargets()) {
      SCOPED_TRACE(target.option_name());
      options.target = &target;
      const auto alone = MakePlan(model, options);
      const auto shared = planner.Make(target);
      ASSERT_TRUE(alone.ok()) << alone.status();
      ASSERT_TRUE(shared.ok()) << shared.status();
      EXPECT_EQ(shared->target, &target);
      EXPECT_EQ(JsonText(PlanJson(model, *shared)), JsonText(PlanJson(model, *alone)));
      plans.push_back(*shared);
    }
    EXPECT_LT(planner.made(), AllTargets().size() / 2);
    ExpectTextsTogetherAreThoseAlone(model, plans);
  }
}

TEST(TargetQuestions, AreAnsweredAlikeIfTheFactsAre) {
  const Target& h13 = **FindTarget("h13");
  const Target& h13g = **FindTarget("h13g");
  const Target& h11 = **FindTarget("h11");
  TargetQuestions& asked = QuestionsOfThread();
  asked = {};
  EXPECT_TRUE(asked.HaveSameAnswers(h13, h11));
  h13.family_index();
  EXPECT_EQ(asked.count, 1);
  EXPECT_TRUE(asked.HaveSameAnswers(h13, h13g));
  EXPECT_FALSE(asked.HaveSameAnswers(h13, h11));
  EXPECT_EQ(asked.count, 1);  // comparing asks nothing
  h13.name();
  EXPECT_FALSE(asked.HaveSameAnswers(h13, h13g));
  asked = {};
  h13.Has(Cap::kSoftmax);
  EXPECT_FALSE(asked.HaveSameAnswers(h13, h11));
}

TEST(TargetQuestions, OfAComparisonAreAnsweredAlikeByOtherLimits) {
  const Target& h13g = **FindTarget("h13g");
  const Target& h14g = **FindTarget("h14g");
  const int64_t small = h13g.limit(Limit::kMaxKernelHLarge)->value;
  const int family = *h13g.family_index();
  ASSERT_GT(h14g.limit(Limit::kMaxKernelHLarge)->value, small);
  TargetQuestions& asked = QuestionsOfThread();
  asked = {};
  EXPECT_TRUE(IsWithin(small, Limit::kMaxKernelHLarge, h13g)->value);
  EXPECT_FALSE(IsWithin(1000, Limit::kMaxKernelHLarge, h13g)->value);
  EXPECT_TRUE(asked.HaveSameAnswers(h13g, h14g));
  EXPECT_FALSE(asked.HaveSameAnswers(h13g, **FindTarget("u1")));  // its limit is not published
  EXPECT_FALSE(IsWithin(small + 1, Limit::kMaxKernelHLarge, h13g)->value);
  EXPECT_FALSE(asked.HaveSameAnswers(h13g, h14g));
  asked = {};
  IsWithin(1, Limit::kMaxKernelHLarge, h13g);
  h13g.limit(Limit::kMaxKernelHLarge);  // the value itself too
  EXPECT_FALSE(asked.HaveSameAnswers(h13g, h14g));
  const Target& h14 = **FindTarget("h14");  // as h14g, whose width is measured
  ASSERT_NE(h14.limit(Limit::kMaxTensorW)->status, h14g.limit(Limit::kMaxTensorW)->status);
  asked = {};
  IsWithin(1, Limit::kMaxTensorW, h14, Status::kDecompileDerived);
  EXPECT_TRUE(asked.HaveSameAnswers(h14, h14g));
  IsWithin(1, Limit::kMaxTensorW, h14);
  EXPECT_FALSE(asked.HaveSameAnswers(h14, h14g));
  asked = {};
  EXPECT_TRUE(*ReachesFamily(family, h13g));
  EXPECT_TRUE(asked.HaveSameAnswers(h13g, h14g));
  EXPECT_FALSE(*ReachesFamily(family + 1, h13g));
  EXPECT_FALSE(asked.HaveSameAnswers(h13g, h14g));
}

}  // namespace
}  // namespace anemone
