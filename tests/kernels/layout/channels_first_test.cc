// Linear layers as 1x1 convolutions (kernels/layout/channels_first.h): which chains are carried,
// how many transposes that takes, and why others stay as they are. Results are those of ONNX
// Runtime.
#include "kernels/layout/channels_first.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "engine/target.h"
#include "engine/unit_kind.h"
#include "provider/settings.h"
#include "tests/kernels/harness.h"
#include "tests/on_onnx_runtime.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMlp[] =
    "(float[1,16,32] x) => (float[1,16,32] y) <float[32,128] v, float[128] a, float[128,32] w, "
    "float[32] b, float[32] g, float[32] d> { m = MatMul(x, v) n = Add(m, a) r = Relu(n) "
    "s = MatMul(r, w) t = Add(s, b) u = Add(t, x) y = LayerNormalization(u, g, d) }";

// Two layers around attention, as exporters write it.
constexpr char kAttention[] =
    "(float[1,16,32] x) => (float[1,16,32] y) <float[32,32] q, float[32] qb, float[32,32] k, "
    "float[32] kb, float[32,32] v, float[32] vb, float[32,32] o, float[32] ob, float[32,128] f, "
    "float[128] fb, float[128,32] h, float[32] hb, int64[4] heads = {1, 16, 4, 8}, "
    "int64[3] flat = {1, 16, 32}, float scale = {0.353}> "
    "{ q0 = MatMul(x, q) q1 = Add(q0, qb) q2 = Reshape(q1, heads) q3 = Transpose<perm = [0, 2, 1, "
    "3]>(q2) k0 = MatMul(x, k) k1 = Add(k0, kb) k2 = Reshape(k1, heads) k3 = Transpose<perm = [0, "
    "2, 3, 1]>(k2) v0 = MatMul(x, v) v1 = Add(v0, vb) v2 = Reshape(v1, heads) v3 = "
    "Transpose<perm = [0, 2, 1, 3]>(v2) s0 = MatMul(q3, k3) s1 = Mul(s0, scale) s2 = Softmax<axis "
    "= -1>(s1) z0 = MatMul(s2, v3) z1 = Transpose<perm = [0, 2, 1, 3]>(z0) z2 = Reshape(z1, flat) "
    "z3 = MatMul(z2, o) z4 = Add(z3, ob) r = Add(z4, x) f0 = MatMul(r, f) f1 = Add(f0, fb) f2 = "
    "Relu(f1) f3 = MatMul(f2, h) f4 = Add(f3, hb) y = Add(f4, r) }";

struct Counts {
  int units = 0, convolutions = 0, products = 0, transposes = 0;
};

Counts CountsOf(const Plan& plan) {
  Counts counts;
  for (const Segment& segment : plan.segments) {
    for (const Unit& unit : segment.network.units) {
      const std::string type = unit.kind->type;
      counts.units += unit.kind->run.is_view ? 0 : 1;
      counts.convolutions += type == "Conv" ? 1 : 0;
      counts.products +=
          !unit.weights.empty() && (type == "MatrixMultiplication" || type == "Linear");
      counts.transposes += type == "Transpose" ? 1 : 0;
    }
  }
  return counts;
}

Plan PlanFor(const Model& model, Route route, bool rewrites = true,
             const std::string& target = "h13") {
  auto plan =
      MakePlan(model, {.target = *FindTarget(target), .route = route, .rewrites = rewrites});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan();
}

std::vector<std::string> ReasonsOf(const Plan& plan) {
  std::vector<std::string> reasons;
  for (const PlanWarning& w : plan.warnings) {
    if (w.rule == "linear-as-convolution") reasons.push_back(w.message);
  }
  return reasons;
}

TEST(ChannelsFirst, AChainIsCarriedBetweenTwoTransposes) {
  const Model model = ModelOf(kMlp);
  const Counts before = CountsOf(PlanFor(model, Route::kNetplist, /*rewrites=*/false));
  const Plan plan = PlanFor(model, Route::kNetplist);
  const Counts after = CountsOf(plan);
  EXPECT_EQ(before.products, 2);
  EXPECT_EQ(after.convolutions, 2);
  EXPECT_EQ(after.products, 0);
  EXPECT_EQ(after.transposes, 2);
  EXPECT_LE(after.units, before.units);
  EXPECT_THAT(ReasonsOf(plan), IsEmpty());
}

TEST(ChannelsFirst, OnlyAttentionTransposes) {
  const Model model = ModelOf(kAttention);
  for (Route route : {Route::kNetplist, Route::kMil}) {
    SCOPED_TRACE(RouteName(route));
    const Counts before = CountsOf(PlanFor(model, route, /*rewrites=*/false));
    const Counts after = CountsOf(PlanFor(model, route));
    EXPECT_EQ(before.products, 6);
    EXPECT_LE(after.products, route == Route::kNetplist ? 0 : 3);
    EXPECT_LE(after.transposes, 6);  // the two ends, query, key, value and the result
    EXPECT_LE(after.units, before.units);
  }
}

TEST(ChannelsFirst, ChannelsFirstModelsNeedNoTranspose) {
  const Model model = ModelOf(
      "(float[1,16,4,4] x) => (float[1,16,4,4] y) <float[16,64] v, float[64,16] w, float[16] b, "
      "int64[3] flat = {1, 16, 16}, int64[4] image = {1, 16, 4, 4}> { f = Reshape(x, flat) t = "
      "Transpose<perm = [0, 2, 1]>(f) m = MatMul(t, v) r = Relu(m) n = MatMul(r, w) a = Add(n, b) "
      "u "
      "= Transpose<perm = [0, 2, 1]>(a) y = Reshape(u, image) }");
  for (Route route : {Route::kNetplist, Route::kMil}) {
    const Counts counts = CountsOf(PlanFor(model, route));
    EXPECT_EQ(counts.convolutions, 2) << RouteName(route);
    EXPECT_EQ(counts.transposes, 0) << RouteName(route);
  }
}

TEST(ChannelsFirst, AChainThatWouldHaveMoreUnitsStaysAndSaysWhy) {
  const Plan plan = PlanFor(
      ModelOf("(float[1,16,32] x) => (float[1,16,64] y) <float[32,64] w> { y = MatMul(x, w) }"),
      Route::kNetplist);
  EXPECT_EQ(CountsOf(plan).products, 1);
  EXPECT_THAT(ReasonsOf(plan),
              testing::ElementsAre(HasSubstr("its chain would have 2 units more")));
}

TEST(ChannelsFirst, ARefusedConvolutionStaysAProductAndSaysWhy) {
  // 20,000 rows are a channel each, but the widest tensor of h13 has 16,384 elements.
  const Plan plan = PlanFor(
      ModelOf(
          "(float[1,20000,8] x) => (float[1,20000,8] y) <float[8,8] w, float[8] b, float[8,8] v, "
          "float[8] c> { m = MatMul(x, w) n = Add(m, b) r = Relu(n) s = MatMul(r, v) y = Add(s, "
          "c) }"),
      Route::kNetplist);
  EXPECT_EQ(CountsOf(plan).products, 2);
  EXPECT_THAT(ReasonsOf(plan), testing::Each(HasSubstr("the convolution is refused")));
}

TEST(ChannelsFirst, APolicyKeepsProducts) {
  const Model model = ModelOf(kMlp);
  EXPECT_EQ(CountsOf(PlanOf(model, {.policy = "refuse:Conv"})).convolutions, 0);
  EXPECT_EQ(CountsOf(PlanOf(model, {.policy = "refuse:Transpose"})).transposes, 0);
}

TEST(ChannelsFirst, NoTargetGetsMoreUnits) {
  for (const char* text : {kMlp, kAttention}) {
    const Model model = ModelOf(text);
    for (const Target& target : AllTargets()) {
      for (Route route : {Route::kNetplist, Route::kMil}) {
        const std::string name(target.option_name());
        EXPECT_LE(CountsOf(PlanFor(model, route, true, name)).units,
                  CountsOf(PlanFor(model, route, false, name)).units)
            << name << " " << RouteName(route);
      }
    }
  }
}

// Fast mode plans with products, and must place nodes as `check` says.
TEST(ChannelsFirst, NodesArePlacedTheSameEitherWay) {
  for (const char* text : {kMlp, kAttention}) {
    const Model model = ModelOf(text);
    for (const Target& target : AllTargets()) {
      for (Route route : {Route::kNetplist, Route::kMil}) {
        SCOPED_TRACE(absl::StrCat(target.option_name(), " ", RouteName(route)));
        PlanOptions options{.target = &target, .route = route};
        const auto convolutions = MakePlan(model, options);
        options.convolves_layers = false;
        const auto products = MakePlan(model, options);
        ASSERT_TRUE(convolutions.ok() && products.ok());
        EXPECT_EQ(CountsOf(*products).convolutions, 0);
        EXPECT_THAT(ReasonsOf(*products), IsEmpty());
        ASSERT_EQ(convolutions->segments.size(), products->segments.size());
        ASSERT_EQ(convolutions->entries.size(), products->entries.size());
        for (size_t i = 0; i < products->entries.size(); ++i) {
          const PlanEntry& a = convolutions->entries[i];
          const PlanEntry& b = products->entries[i];
          EXPECT_EQ(a.placement, b.placement) << i;
          EXPECT_EQ(a.nodes, b.nodes) << i;
          EXPECT_EQ(a.segment, b.segment) << i;
          EXPECT_EQ(a.verdict.message, b.verdict.message) << i;
        }
      }
    }
  }
}

// In a plan that is run. Other plans have convolutions by default.
TEST(ChannelsFirst, FastModeKeepsProductsUnlessItIsTold) {
  const struct {
    const char *form, *numerics;
    bool convolves;
  } cases[] = {{"auto", "fast", false},
               {"auto", "exact,mac-tile=none", true},
               {"products", "exact", false},
               {"convolutions", "fast", true}};
  for (const auto& c : cases) {
    auto planning = RunPlanOptionsOf({.linear_layers = c.form, .numerics = c.numerics});
    ASSERT_TRUE(planning.ok()) << planning.status();
    EXPECT_EQ(planning->convolves_layers, c.convolves) << c.form << " " << c.numerics;
  }
  EXPECT_TRUE(PlanOptionsOf({})->convolves_layers);
  EXPECT_FALSE(PlanOptionsOf({.linear_layers = "products"})->convolves_layers);
  EXPECT_EQ(PlanOptionsOf({.linear_layers = "matrices"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Exact mode rounds by the rules of the silicon, so its tolerance is larger.
TEST(ChannelsFirst, BothModesAgreeWithOnnxRuntime) {
  for (const char* text : {kMlp, kAttention}) {
    onnx::ModelProto proto = ModelOfText(text);
    std::mt19937 random(3);
    FillDeclared(*proto.mutable_graph(), -0.3F, 0.3F, random);
    const std::string bytes = proto.SerializeAsString();
    Tensor x = Tensor::Zeros(DataType::kFloat, {1, 16, 32});
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int i = 0; i < x.elements(); ++i) x.mutable_data<float>()[i] = uniform(random);
    const auto want = RunOnOnnxRuntime(bytes, {{"x", x}});
    ASSERT_TRUE(want.ok()) << want.status();
    float largest = 0;
    for (int i = 0; i < x.elements(); ++i) {
      largest = std::max(largest, std::abs(want->at("y").at<float>(i)));
    }
    for (const char* route : {"netplist", "mil"}) {
      for (const char* numerics : {"fast", "exact"}) {
        auto session = Session::LoadBytes(
            bytes, {.route = route, .linear_layers = "convolutions", .numerics = numerics});
        ASSERT_TRUE(session.ok()) << session.status();
        auto got = session->Run({{"x", x}});
        ASSERT_TRUE(got.ok()) << got.status();
        for (int i = 0; i < x.elements(); ++i) {
          ASSERT_NEAR(got->at("y").at<float>(i), want->at("y").at<float>(i), 0.01F * largest)
              << route << " " << numerics << " " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    ChannelsFirst, KernelTest,
    testing::ValuesIn(std::vector<Case>{
        {.name = "mlp",
         .model = kMlp,
         .units =
             Units({{"Conv", 2}, {"ElementWise", 4}, {"LayerNormalization", 1}, {"Neuron", 1}})},
        {.name = "batched",
         .model =
             "(float[3,8,8] x) => (float[3,8,8] y) <float[8,32] v, float[32] a, float[32,8] w, "
             "float[8] b, float[8,8] p> { q = Add(x, p) m = MatMul(q, v) n = Add(m, a) r = "
             "Sigmoid(n) s = MatMul(r, w) t = Add(s, b) y = Mul(t, x) }",
         .units = Units({{"Conv", 2}, {"ElementWise", 6}, {"Neuron", 1}})},
        {.name = "rank_4",
         .model =
             "(float[2,3,8,8] x) => (float[2,3,8,8] y) <float[8,32] v, float[32] a, float[32,8] "
             "w, float[8] b, float[3,1,8] p> { q = Add(x, p) m = MatMul(q, v) n = Add(m, a) r = "
             "Sigmoid(n) s = MatMul(r, w) t = Add(s, b) y = Mul(t, q) }",
         .units = Units({{"MatrixMultiplication", 2}, {"ElementWise", 4}, {"Neuron", 1}})},
        {.name = "gemm_of_rows",
         .model = "(float[6,8] x) => (float[6,8] y) <float[8,32] v, float[32] a, float[32,8] w, "
                  "float[8] b> { m = Gemm(x, v, a) r = Relu(m) s = Gemm(r, w, b) y = Softmax(s) }",
         .units = Units({{"Conv", 2}, {"Neuron", 1}, {"Softmax", 1}})},
    }),
    CaseName);

}  // namespace
}  // namespace anemone
