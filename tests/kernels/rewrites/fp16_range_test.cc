// Constants and values that fp16 cannot hold: factors that are written as two, nodes that stay on
// the CPU, and masks that are clamped.
#include "kernels/fp16_range.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/units/goc.h"
#include "tests/kernels/harness.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

using testing::HasSubstr;

// The user saw 65.5 for 1000, and 0 for 0.0001.
const std::vector<Case> kFactors = {
    {.name = "large",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {1000000}> { y = Mul(x, k) }",
     .units = {"GOC", "GOC"},
     .low = -0.06,
     .high = 0.06},
    {.name = "small",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {1e-8}> { y = Mul(k, x) }",
     .units = {"GOC", "GOC"},
     .low = 0,
     .high = 60000},
    {.name = "subnormal",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {0.0000012}> { y = Mul(k, x) }",
     .units = {"GOC", "GOC"},
     .tolerance = 1e-3,
     .low = 0,
     .high = 60000},
    {.name = "divisor",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {10000000}> { y = Div(x, k) }",
     .units = {"GOC", "GOC"},
     .low = 0,
     .high = 60000},
    {.name = "small_divisor",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {1e-6}> { y = Div(x, k) }",
     .units = {"GOC", "GOC"},
     .low = -0.06,
     .high = 0.06},
    {.name = "scale_and_bias",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {-100000}, float b = {3}> "
              "{ a = Mul(x, k) y = Add(a, b) }",
     .units = {"GOC", "GOC"},
     .low = -0.6,
     .high = 0.6},
    {.name = "tensor",
     .model = "(float[3,2] x) => (float[3,2] y) <float[2] k = {1e-6, 2e-6}> { y = Mul(x, k) }",
     .units = {"ElementWise", "GOC"},
     .low = 0,
     .high = 60000},
    {.name = "large_tensor",
     .model =
         "(float[3,2] x) => (float[3,2] y) <float[2] k = {1000000, -200000}> { y = Mul(k, x) }",
     .units = {"ElementWise", "GOC"},
     .low = -0.06,
     .high = 0.06},
    {.name = "tensor_divisor",
     .model = "(float[3,2] x) => (float[3,2] y) <float[2] k = {1e-6, 2e-6}> { y = Div(x, k) }",
     .target = "h16",
     .units = {"ElementWise", "GOC"},
     .low = -0.06,
     .high = 0.06},
    {.name = "dividend",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {1000000}> { y = Div(k, x) }",
     .target = "h16",
     .units = {"ElementWise", "GOC"},
     .low = 100,
     .high = 200},
    {.name = "attribute",
     .model = "(float[3,5] x) => (float[3,5] y) { y = HardSigmoid<alpha = 1e5, beta = 0.5>(x) }",
     .units = {"GOC", "GOC", "Neuron"},
     .tolerance = 0.01,
     .low = -0.000006,
     .high = 0.000006},
    {.name = "small_attribute",
     .model = "(float[3,5] x) => (float[3,5] y) { y = Celu<alpha = 1e-6>(x) }",
     .units = {"GOC", "GOC", "Neuron", "GOC", "GOC"},
     .tolerance = 0.01,
     .low = -0.05,
     .high = 0.05},
    {.name = "no_softmax_mask",
     .model = "(float[3,5] x) => (float[3,5] y) <float k = {100000}> "
              "{ a = Mul(x, k) y = Softmax(a) }",
     .units = {"GOC", "GOC", "Softmax"},
     .tolerance = 0.02,
     .low = 0,
     .high = 0.00005},
};
INSTANTIATE_TEST_SUITE_P(Factors, KernelTest, testing::ValuesIn(kFactors), CaseName);

Case OnCpu(const std::string& name, const std::string& model) {
  return {.name = name, .model = model, .refused_by = "fp16-range"};
}

const std::vector<Case> kRefused = {
    OnCpu("too_large", "(float[3,5] x) => (float[3,5] y) <float k = {1e12}> { y = Mul(x, k) }"),
    OnCpu("too_small", "(float[3,5] x) => (float[3,5] y) <float k = {1e-12}> { y = Mul(x, k) }"),
    OnCpu("added", "(float[3,5] x) => (float[3,5] y) <float k = {100000}> { y = Add(x, k) }"),
    OnCpu("floor", "(float[3,5] x) => (float[3,5] y) <float k = {100000}> { y = Max(x, k) }"),
    OnCpu("chosen",
          "(bool[3,5] c, float[3,5] x) => (float[3,5] y) <float k = {100000}> { y = Where(c, x, k) "
          "}"),
    OnCpu("weights",
          "(float[3,2] x) => (float[3,1] y) <float[2,1] w = {1, 70000}> "
          "{ y = MatMul(x, w) }"),
    OnCpu("small_weights",
          "(float[3,2] x) => (float[3,1] y) <float[2,1] w = {0.000001, 0}> "
          "{ y = MatMul(x, w) }"),
    OnCpu("elu", "(float[3,5] x) => (float[3,5] y) { y = Elu<alpha = 1e5>(x) }"),
    OnCpu("leaky_relu", "(float[3,5] x) => (float[3,5] y) { y = LeakyRelu<alpha = -1e5>(x) }"),
    OnCpu("thresholded_relu",
          "(float[3,5] x) => (float[3,5] y) { y = ThresholdedRelu<alpha = 1e5>(x) }"),
    OnCpu("selu", "(float[3,5] x) => (float[3,5] y) { y = Selu<gamma = 1e10>(x) }"),
    OnCpu("celu", "(float[3,5] x) => (float[3,5] y) { y = Celu<alpha = 1e-10>(x) }"),
    OnCpu("shrink", "(float[3,5] x) => (float[3,5] y) { y = Shrink<bias = 1e5, lambd = 0.1>(x) }"),
    OnCpu("hard_sigmoid",
          "(float[3,5] x) => (float[3,5] y) { y = HardSigmoid<alpha = 1e5, beta = -1e5>(x) }"),
    OnCpu("epsilon",
          "(float[3,5] x, float[5] s) => (float[3,5] y) "
          "{ y = LayerNormalization<epsilon = 1e5>(x, s) }"),
    OnCpu("instance_epsilon",
          "(float[1,2,5] x) => (float[1,2,5] y) <float[2] s = {1, 2}, float[2] b = {0, 1}> "
          "{ y = InstanceNormalization<epsilon = 1e5>(x, s, b) }"),
    OnCpu("lrn", "(float[1,8,2,2] x) => (float[1,8,2,2] y) { y = LRN<size = 3, bias = 1e5>(x) }"),
    OnCpu("gemm",
          "(float[3,2] a, float[2,4] b) => (float[3,4] y) { y = Gemm<alpha = 1e10>(a, b) }"),
    OnCpu("gemm_weights",
          "(float[3,2] a) => (float[3,1] y) <float[2,1] b = {100, 1}> "
          "{ y = Gemm<alpha = 1000.0>(a, b) }"),
    OnCpu("gemm_addend",
          "(float[3,2] a, float[2,4] b, float[4] c) => (float[3,4] y) "
          "{ y = Gemm<beta = 1e-10>(a, b, c) }"),
    {.name = "batch_normalization",
     .model = "(float[1,2,3,3] x) => (float[1,2,3,3] y) <float[2] s = {1, 1}, float[2] b = {0, 0}, "
              "float[2] m = {0, 0}, float[2] v = {1, 1e-12}> "
              "{ y = BatchNormalization<epsilon = 1e-12>(x, s, b, m, v) }",
     .refused_by = "form-not-lowered"},
    OnCpu("padding",
          "(float[1,2] x) => (float[1,4] y) <int64[4] p = {0, 1, 0, 1}, float k = {1e5}> "
          "{ y = Pad(x, p, k) }"),
    OnCpu("dequantized",
          "(int8[3,5] x) => (float[3,5] y) <float s = {1000}> { y = DequantizeLinear(x, s) }"),
    OnCpu("read_after_dequantized",
          "(int8[3,5] x) => (float[3,5] y) <float s = {1000}> "
          "{ a = DequantizeLinear(x, s) y = Neg(a) }"),
    OnCpu("accumulators",
          "(uint8[2,300] a, float s) => (float[2,3] y) <int64[2] n = {300, 3}> "
          "{ w = ConstantOfShape<value = int8[1] {100}>(n) b = MatMulInteger(a, w) c = Cast<to = "
          "1>(b) y = Mul(c, s) }"),
    OnCpu("filters",
          "(uint8[1,64,5,5] a, float s) => (float[1,2,3,3] y) <int64[4] n = {2, 64, 3, 3}> "
          "{ w = ConstantOfShape<value = int8[1] {100}>(n) b = ConvInteger(a, w) c = Cast<to = "
          "1>(b) y = Mul(c, s) }"),
    OnCpu(
        "sum_of_many",
        "(uint8[1,3,32,32] a) => (float y) { b = Cast<to = 1>(a) y = ReduceSum<keepdims = 0>(b) }"),
    OnCpu(
        "bounded_by_a_sigmoid",
        "(float[3,5] x) => (float[3,5] y) <float k = {1000000}> { a = Sigmoid(x) y = Mul(a, k) }"),
};
INSTANTIATE_TEST_SUITE_P(KeptOffTheEngine, KernelTest, testing::ValuesIn(kRefused), CaseName);

// Masks stay on the engine.
const std::vector<Case> kMasks = {
    {.name = "scaled",
     .model = "(bool[1,4] m, float[2,4] s) => (float[2,4] y) <float one = {1}, float k = {-1e9}> "
              "{ a = Cast<to = 1>(m) b = Sub(one, a) c = Mul(b, k) d = Add(s, c) y = Softmax(d) }",
     .units = {"GOC", "GOC", "ElementWise", "Softmax"}},
    {.name = "lowest",
     .model = "(bool[1,4] m, float[2,4] s) => (float[2,4] y) "
              "<float one = {1}, float k = {-3.4028235e38}> { a = Cast<to = 1>(m) b = Sub(one, a) "
              "c = Mul(b, k) d = Add(s, c) e = Max(d, k) y = Softmax(e) }",
     .units = {"GOC", "GOC", "ElementWise", "ElementWise", "Softmax"}},
    {.name = "constant",
     .model = "(float[2,2] s) => (float[2,2] y) <float[2,2] m = {0, -3.4e38, 0, 0}> "
              "{ d = Add(s, m) y = Softmax(d) }",
     .units = {"ElementWise", "Softmax"}},
    {.name = "chosen",
     .model = "(bool[2,4] m, float[2,4] s) => (float[2,4] y) <float k = {-1e9}> "
              "{ d = Where(m, s, k) y = Softmax(d) }",
     .units = {"ElementWise", "GOC", "ElementWise", "Softmax"}},
    {.name = "picked",
     .model = "(bool[2,4] m, float[2,4] s) => (float[2,1] y) <float k = {-1e9}, int64[1] l = {1}> "
              "{ d = Where(m, s, k) y = ReduceMax(d, l) }",
     .units = {"ElementWise", "GOC", "ElementWise", "Reduction"},
     .low = 2,
     .high = 3,
     .seed = 4},
};
INSTANTIATE_TEST_SUITE_P(Masks, KernelTest, testing::ValuesIn(kMasks), CaseName);

// Inputs and integers of which only the type is known say nothing about the values that occur.
const std::vector<Case> kUnknown = {
    {.name = "mask_of_integers",
     .model = "(int64[2,6] m, float[2,6] s) => (float[2,6] y) <float k = {3000}> "
              "{ a = Cast<to = 1>(m) b = Mul(a, k) y = Add(s, b) }",
     .units = {"GOC", "ElementWise"},
     .on_cpu = {"/#0"}},
    {.name = "pixels",
     .model = "(uint8[2,6] m) => (float[2,6] y) <float k = {0.00392157}> "
              "{ a = Cast<to = 1>(m) y = Mul(a, k) }",
     .units = {"GOC", "GOC"}},  // the first converts the uint8 port
    {.name = "clip_to_large_limits",
     .model = "(float[2,6] x) => (float[2,6] y) <float a = {-1e9}, float b = {1e9}> "
              "{ y = Clip(x, a, b) }",
     .units = {}},
};
INSTANTIATE_TEST_SUITE_P(OfUnknownValues, KernelTest, testing::ValuesIn(kUnknown), CaseName);

TEST(Fp16Range, FactorsMultiplyToTheScale) {
  for (double scale : {1e6, -70000.0, 1e8, 1e-8, -3e-5, 6.1e-5, 1e-6, 0x1p28, 0x1p-28}) {
    const auto factors = FactorsOf(scale);
    ASSERT_TRUE(factors) << scale;
    EXPECT_EQ(factors->first * factors->second, scale);
    for (double factor : {factors->first, factors->second}) {
      EXPECT_GE(std::fabs(factor), 0x1p-14) << scale;
      EXPECT_LE(std::fabs(factor), 65504) << scale;
    }
  }
  EXPECT_EQ(FactorsOf(0.5)->second, 0.5);
  EXPECT_EQ(FactorsOf(0)->second, 0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double scale : {1e9, 1e-9, -kInfinity, nan}) EXPECT_FALSE(FactorsOf(scale)) << scale;
}

constexpr char kAccumulators[] =
    "(uint8[2,300] a, float s) => (float[2,3] y) <int64[2] n = {300, 3}> "
    "{ w = ConstantOfShape<value = int8[1] {100}>(n) b = MatMulInteger(a, w) c = Cast<to = 1>(b) y "
    "= Mul(c, s) }";

TEST(Fp16Range, ThePlanNamesTheValueAndItsInterval) {
  const Plan plan = PlanOf(ModelOf(kAccumulators));
  const auto is_mul = [](const PlanEntry& entry) { return entry.verdict.rule_id() == kFp16Range; };
  const auto entry = std::find_if(plan.entries.begin(), plan.entries.end(), is_mul);
  ASSERT_NE(entry, plan.entries.end());
  const Verdict& verdict = entry->verdict;
  EXPECT_THAT(verdict.message, HasSubstr("value 'c' in "));
  EXPECT_THAT(verdict.message, HasSubstr("exceeds 65504"));
  EXPECT_THAT(verdict.own_remedy, HasSubstr("--policy insist:fp16-range"));
}

TEST(Fp16Range, APolicyInsists) {
  const Plan plan = PlanOf(ModelOf(kAccumulators), {.policy = "insist:fp16-range"});
  EXPECT_EQ(plan.engine_segments(), 1);
  EXPECT_EQ(PlanOf(ModelOf(kAccumulators)).engine_segments(), 0);
}

TEST(Fp16Range, WarnsOfNumbersThatVanish) {
  const auto warnings_of = [](const std::string& text) {
    std::vector<std::string> told;
    for (const PlanWarning& w : PlanOf(ModelOf(text)).warnings) {
      if (w.rule == "vanishing-constant") told.push_back(w.message);
    }
    return told;
  };
  EXPECT_THAT(warnings_of("(float[2,4] x) => (float[2,4] y) <float e = {1e-12}> "
                          "{ a = Add(x, e) y = Sqrt(a) }"),
              testing::ElementsAre(HasSubstr("constant 'e' of 1e-12 becomes 0 in fp16")));
  EXPECT_THAT(warnings_of("(float[2,4] x, float[4] s) => (float[2,4] y) "
                          "{ y = LayerNormalization<epsilon = 1e-12>(x, s) }"),
              testing::ElementsAre(HasSubstr("epsilon of 1e-12 becomes 0 in fp16")));
  EXPECT_THAT(warnings_of("(float[2,4] x, float[4] s) => (float[2,4] y) "
                          "{ y = LayerNormalization<epsilon = 1e-5>(x, s) }"),
              testing::IsEmpty());
  EXPECT_THAT(warnings_of("(float[2,4] x) => (float[2,4] y) <float e = {1e-8}> { y = Pow(x, e) }"),
              testing::ElementsAre(HasSubstr("constant 'e' of 1e-08 becomes 0 in fp16")));
  EXPECT_THAT(warnings_of("(float[2,4] x) => (float[2,4] y) { y = LeakyRelu<alpha = 1e-9>(x) }"),
              testing::ElementsAre(HasSubstr("alpha of 1e-09 becomes 0 in fp16")));
  EXPECT_THAT(warnings_of("(bool[4] c, float[4] x) => (float[4] y) <float e = {-1e-9}> "
                          "{ y = Where(c, x, e) }"),
              testing::ElementsAre(HasSubstr("constant 'e' of -1e-09 becomes 0 in fp16")));
  EXPECT_THAT(warnings_of("(float[2] x) => (float[2] y) <float[2] e = {1e-9, 2e-9}> "
                          "{ y = Add(x, e) }"),
              testing::ElementsAre(HasSubstr("constant 'e' of 2e-09 becomes 0 in fp16")));
  EXPECT_THAT(warnings_of("(float[2] x) => (float[2] y) <float[2] e = {0, 0.001}> "
                          "{ y = Add(x, e) }"),
              testing::IsEmpty());
}

TEST(Fp16Range, WarnsOfSumsOfSquares) {
  const auto warns = [](const std::string& nodes) {
    const Plan plan =
        PlanOf(ModelOf("(float[2,4] x, float[2,4] z) => (float[2,1] y) "
                       "<int64[1] l = {1}, float two = {2}, float k = {0.001}> { " +
                       nodes + " }"));
    return std::count_if(plan.warnings.begin(), plan.warnings.end(),
                         [](const PlanWarning& w) { return w.rule == "squares"; });
  };
  EXPECT_EQ(warns("y = ReduceL2(x, l)"), 1);
  EXPECT_EQ(warns("y = ReduceSumSquare(x, l)"), 1);
  EXPECT_EQ(warns("a = Sub(x, z) b = Pow(a, two) y = ReduceMean(b, l)"), 1);
  EXPECT_EQ(warns("a = Mul(x, k) y = ReduceL2(a, l)"), 0);  // scaled
  EXPECT_EQ(warns("a = LpNormalization(x) y = ReduceSum(a, l)"), 0);
  EXPECT_EQ(warns("a = Mul(x, z) y = ReduceSum(a, l)"), 0);
}

}  // namespace
}  // namespace anemone
