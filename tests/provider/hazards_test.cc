// Session::FindHazards: a small model for each hazard, with the magnitudes that must be reported;
// and models without hazards.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

#include "anemone/session.h"
#include "tests/onnx_text.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

struct HazardCase {
  const char* name;
  const char* model;  // has one input, x
  std::vector<float> x;
  // The expected hazards, in order. "" for a model without hazards.
  struct Told {
    const char* kind;
    const char* op_type;  // "" for a port
    int64_t count;
    double magnitude, operands;  // -1 if not known
  };
  std::vector<Told> told;
  const char* target = "h13";
};

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

const HazardCase kHazardsCases[] = {
    // Overflow: the exact results of sums and products are known, others are not.
    {"mult",
     "(float[4] x) => (float[4] y) { y = Mul(x, x) }",
     {1, 255, 300, -400},
     {{"overflow", "Mul", 2, 160000, 400}}},
    {"add",
     "(float[2] x) => (float[2] y) { y = Add(x, x) }",
     {40000, 1},
     {{"overflow", "Add", 1, 80000, 40000}}},
    {"exp",
     "(float[2] x) => (float[2] y) { y = Exp(x) }",
     {12, 1},
     {{"overflow", "Exp", 1, -1, 12}}},
    {"constant",
     "(float[3] x) => (float[3] y) <float c = {-8}> { y = Mul(x, c) }",
     {10000, -1, 9000},
     {{"overflow", "Mul", 2, 80000, 10000}}},
    {"constants_by_channel",
     "(float[1,2,1,2] x) => (float[1,2,1,2] y)"
     " <float[2] s = {2, 90}, float[2] b = {1, 60000}, float[2] m = {0, 0}, float[2] v = {1, 1}>"
     " { y = BatchNormalization<epsilon = 0.0>(x, s, b, m, v) }",
     {20000, 1, 100, 70},
     {{"overflow", "BatchNormalization", 2, 69000, 20000}}},
    {"infinite_scale",
     "(float[1,1,1,3] x) => (float[1,1,1,3] y)"
     " <float[1] s = {1}, float[1] b = {1}, float[1] m = {0}, float[1] v = {0}>"
     " { y = BatchNormalization<epsilon = 0.0>(x, s, b, m, v) }",
     {1, 2, 3},
     {{"overflow", "BatchNormalization", 3, -1, 3}}},
    {"reduce",
     "(float[1,4] x) => (float[1,1] y) <int64[1] axes = {1}> { y = ReduceSum(x, axes) }",
     {30000, 30000, 30000, 8},
     {{"overflow", "ReduceSum", 1, 90008, 30000}}},
    // Reported once, where it begins.
    {"downstream",
     "(float[2] x) => (float[2] y) { a = Add(x, x) y = Relu(a) }",
     {40000, 1},
     {{"overflow", "Add", 1, 80000, 40000}}},
    {"beside_an_infinity",
     "(float[3] x) => (float[3] y) { y = Add(x, x) }",
     {kInf, 40000, 1},
     {{"overflow", "Add", 1, 80000, 40000}}},
    {"port",
     "(float[2] x) => (float[2] y) { y = Relu(x) }",
     {1e6, 1},
     {{"overflow", "", 1, 1e6, -1}}},
    {"an_infinite_input", "(float[2] x) => (float[2] y) { y = Relu(x) }", {kInf, 1}, {}},
    {"nan_port",
     "(float[2] x) => (float[2] y) { y = Relu(x) }",
     {kNan, 1},
     {{"nan-input", "", 1, -1, -1}}},
    // 2^15 at the output of a product: below the limit of fp16, and above it.
    {"ceiling",
     "(float[1,2] x) => (float[1,2] y) <float[2,2] w = {16, 1, 16, 2}> "
     "{ y = MatMul(x, w) }",
     {1024, 1024},
     {{"port-saturation", "MatMul", 1, 32768, 1024}}},
    {"below_the_ceiling",
     "(float[1,2] x) => (float[1,2] y) <float[2,2] w = {16, 1, 15, 2}> "
     "{ y = MatMul(x, w) }",
     {1024, 1024},
     {}},
    {"beyond",
     "(float[1,1,1,2] x) => (float[1,1,1,1] y) <float[1,1,1,2] w = {100, 100}> "
     "{ y = Conv(x, w) }",
     {1000, 2000},
     {{"port-saturation", "Conv", 1, 300000, 2000}}},
    // The sum of squares of a normalization, clamped or not.
    {"local_response",
     "(float[1,8,1,1] x) => (float[1,8,1,1] y) { y = LRN<size = 3, alpha = 1.0, bias = 0.1>(x) }",
     {1000, 1, 2, 3, 0, 1, 2, 3},
     {{"port-saturation", "LRN", 2, 33096, 65024}}},
    // A convolution with one tap does not saturate.
    {"one_tap",
     "(float[1,1,1,2] x) => (float[1,1,1,2] y) <float[1,1,1,1] w = {2}> "
     "{ y = Conv(x, w) }",
     {20000, 1},
     {}},
    // Slices inside the width.
    {"slice",
     "(float[1,1,1,4] x) => (float[1,1,1,3] y) <int64[1] s = {1}, int64[1] e = {4}, "
     "int64[1] a = {3}> { y = Slice(x, s, e, a) }",
     {9000, 4094, 4096, -5000},
     {{"width-slice", "Slice", 2, 5000, 5000}}},
    {"slice_from_0",
     "(float[1,1,1,4] x) => (float[1,1,1,3] y) <int64[1] s = {0}, int64[1] e = {3},"
     " int64[1] a = {3}> { y = Slice(x, s, e, a) }",
     {9000, 4094, 4096, -5000},
     {}},
    {"slice_on_a15",
     "(float[1,1,1,4] x) => (float[1,1,1,3] y) <int64[1] s = {1}, int64[1] e = {4},"
     " int64[1] a = {3}> { y = Slice(x, s, e, a) }",
     {9000, 4094, 4096, -5000},
     {},
     "h15"},
    // Cancellation: S > 2048 |y|.
    {"difference",
     "(float[2] x) => (float[2] y) <float[2] c = {4094, 4092}> { y = Sub(x, c) }",
     {4096, 4094},
     {{"cancellation", "Sub", 2, 2, 8190}}},
    {"not_yet",
     "(float[2] x) => (float[2] y) <float[2] c = {2046, 2044}> { y = Sub(x, c) }",
     {2048, 2046},
     {}},
    {"one_among_large",
     "(float[2] x) => (float[2] y) <float[2] c = {4094, 1}> { y = Sub(x, c) }",
     {4096, 4096},
     {}},
    {"contraction",
     "(float[1,3] x) => (float[1,1] y) <float[3,1] w = {8, 8, 1}> "
     "{ y = MatMul(x, w) }",
     {2048, -2048, 2},
     {{"cancellation", "MatMul", 1, 2, 32770}}},
    {"mean",
     "(float[1,4] x) => (float[1,1] y) <int64[1] axes = {1}> { y = ReduceMean(x, axes) }",
     {4096, -4096, 4096, -4094},
     {{"cancellation", "ReduceMean", 1, 0.5, 4095.5}}},
    // NaN: the engine returns +0.
    {"root",
     "(float[2] x) => (float[2] y) { y = Sqrt(x) }",
     {-4, 4},
     {{"indeterminate", "Sqrt", 1, -1, 4}}},
    {"inf_minus_inf",
     "(float[2] x) => (float[2] y) { y = Sub(x, x) }",
     {kInf, 0},
     {{"indeterminate", "Sub", 1, -1, 0}}},
    // Subnormals in a product, on a family that flushes them.
    {"subnormal",
     "(float[1,2] x) => (float[1,1] y) <float[2,1] w = {1, 1}> { y = MatMul(x, w) }",
     {0x1.f7p-16f, 0},
     {{"subnormal-flush", "MatMul", 2, 3.0e-5, 3.0e-5}}},
    {"subnormal_on_a16",
     "(float[1,2] x) => (float[1,1] y) <float[2,1] w = {1, 1}> { y = MatMul(x, w) }",
     {0x1.f7p-16f, 0},
     {},
     "h16"},
    // Results that fp16 rounds to 0 or to few digits.
    {"product_underflows",
     "(float[3] x) => (float[3] y) { y = Mul(x, x) }",
     {0x1p-10f, 0x1.01p-11f, 0},
     {{"underflow", "Mul", 1, 0x1.02p-22, -1}}},
    {"one_underflows_beside_a_large_one",
     "(float[2] x) => (float[2] y) { y = Mul(x, x) }",
     {0x1.01p-11f, 1},
     {}},
    {"scaled_down",
     "(float[2] x) => (float[2] y) <float k = {1e-8}> { y = Mul(x, k) }",
     {1, 2},
     {{"underflow", "Mul", 2, 2e-8, -1}}},
    {"exponential_underflows",
     "(float[2] x) => (float[2] y) { y = Exp(x) }",
     {-20, -30},
     {{"underflow", "Exp", 2, 2.06e-9, -1}}},
    {"quotient_underflows",
     "(float[2] x) => (float[2] y) <float[2] k = {30000, 60000}> { y = Div(x, k) }",
     {0.0001f, 0},
     {{"underflow", "Div", 1, 3.334e-9, -1}},
     "h16"},
    {"sum_of_products_underflows",
     "(float[1,2] x) => (float[1,1] y) <float[2,1] w = {0.001, 0.001}> { y = MatMul(x, w) }",
     {0.00009f, 0},
     {{"underflow", "MatMul", 1, 9e-8, -1}},
     "h16"},
    {"tails_of_a_softmax", "(float[3] x) => (float[3] y) { y = Softmax(x) }", {0, -15, -16}, {}},
    {"tails_of_a_sigmoid", "(float[3] x) => (float[3] y) { y = Sigmoid(x) }", {0, -15, -16}, {}},
    {"zeros", "(float[3] x) => (float[3] y) { y = Mul(x, x) }", {0, 0, 0}, {}},
    // What rounding to fp16 loses at a port, and of a constant.
    {"small_input",
     "(float[3] x) => (float[3] y) { y = Relu(x) }",
     {1e-8, 3.1e-7, 0},
     {{"port-rounding", "", 2, 3.1e-7, -1}}},
    {"small_input_beside_a_large_one",
     "(float[2] x) => (float[2] y) { y = Relu(x) }",
     {1e-8, 1},
     {}},
    {"exact_subnormal", "(float[2] x) => (float[2] y) { y = Relu(x) }", {0x1p-20f, 0}, {}},
    {"mask",
     "(float[2] x) => (float[2] y) <float[2] m = {0, -1e9}> { a = Add(x, m) y = Softmax(a) }",
     {1, 2},
     {{"constant", "Add", 1, 1e9, -1}}},
    {"small_constant",
     "(float[2] x) => (float[2] y) <float e = {1e-12}> { y = Add(x, e) }",
     {1, 2},
     {{"constant", "Add", 1, 1e-12, -1}}},
    {"two_factors",
     "(float[2] x) => (float[2] y) <float k = {1e-6}> { y = Mul(x, k) }",
     {1000, 2000},
     {}},
    {"small_part",
     "(float[1,2] x) => (float[1,1] y) <float[2,1] w = {1, 1}> { y = MatMul(x, w) }",
     {0x1.f7p-16f, 1},
     {}},
};

class Hazards : public testing::TestWithParam<HazardCase> {};

void ExpectValue(double want, const std::optional<double>& got, const char* what) {
  EXPECT_EQ(want >= 0, got.has_value()) << what;
  // The input rounded to fp16.
  if (want >= 0 && got.has_value()) {
    EXPECT_NEAR(*got, want, want * 1e-3) << what;
  }
}

TEST_P(Hazards, AreToldWithMagnitudes) {
  const HazardCase& c = GetParam();
  for (const char* numerics : {"fast", "exact"}) {
    auto session = Session::LoadBytes(BytesOfText(c.model),
                                      {.target = c.target, .numerics = numerics, .hazards = true});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_EQ(session->Summary().cpu_segments, 0);
    auto got = session->FindHazards({{"x", Tensor::Floats(session->inputs()[0].dims, c.x)}});
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), c.told.size()) << (got->empty() ? "" : got->back().kind);
    for (size_t i = 0; i < c.told.size(); ++i) {
      const Hazard& h = (*got)[i];
      EXPECT_EQ(h.kind, c.told[i].kind);
      EXPECT_EQ(h.op_type, c.told[i].op_type);
      EXPECT_EQ(h.count, c.told[i].count);
      EXPECT_TRUE(h.first);
      ExpectValue(c.told[i].magnitude, h.magnitude, "magnitude");
      ExpectValue(c.told[i].operands, h.operands, "operands");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Hazards, testing::ValuesIn(kHazardsCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HazardReport, NamesNodesInTheOrderOfThePlan) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[2] x, float[2] far) => (float[2] y, float[2] z, float[2] w) { "
                  "a = Mul(x, x) y = Sigmoid(a) n = Neg(x) z = Sqrt(n) w = Add(far, x) }"),
      {.hazards = true});
  ASSERT_TRUE(session.ok()) << session.status();
  auto got = session->FindHazards(
      {{"x", Tensor::Floats({2}, {1000, 1})}, {"far", Tensor::Floats({2}, {1e9, 1})}});
  ASSERT_TRUE(got.ok()) << got.status();
  std::vector<std::string> told;
  told.reserve(got->size());
  for (const Hazard& h : *got) {
    told.push_back(h.kind + " " + h.node + h.name + (h.first ? " first" : ""));
  }
  EXPECT_THAT(
      told, testing::ElementsAre("overflow far first", "overflow /#0", "indeterminate /#3 first"));
  EXPECT_THAT((*got)[0].remedy, testing::EndsWith("(--policy refuse:node:w)"));
  EXPECT_THAT((*got)[1].remedy, testing::EndsWith("(--policy refuse:node:/#0)"));
}

TEST(HazardReport, TheRemedyForAConstantNamesTheNode) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[2] x) => (float[2] y) <float[2] c = {100000, 1}> { y = Add(x, c) }"),
      {.policy = "insist:fp16-range", .hazards = true});
  ASSERT_TRUE(session.ok()) << session.status();
  auto got = session->FindHazards({{"x", Tensor::Floats({2}, {1, 1})}});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_FALSE(got->empty());
  EXPECT_EQ((*got)[0].kind, "constant");
  EXPECT_THAT((*got)[0].remedy, testing::EndsWith("(--policy refuse:node:/#0)"));
}

TEST(HazardReport, FindsThemBehindTheCpu) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[1,1,2,2] x) => (float[1,1,2,2] y) { a = Mul(x, x) "
                  "b = MaxPool<kernel_shape = [1, 1]>(a) c = Neg(b) y = Sub(c, c) }"),
      {.policy = "refuse:Pooling", .hazards = true});
  ASSERT_TRUE(session.ok()) << session.status();
  auto got = session->FindHazards({{"x", Tensor::Floats({1, 1, 2, 2}, {1, 2, 3, 300})}});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_FALSE(got->empty());
  EXPECT_EQ((*got)[0].kind, "overflow");
  EXPECT_EQ((*got)[0].node, "/#0");
  EXPECT_EQ((*got)[0].segment, 0);
}

TEST(HazardReport, ASessionMustBeLoadedForIt) {
  auto session = Session::LoadBytes(BytesOfText("(float[2] x) => (float[2] y) { y = Relu(x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->FindHazards({{"x", Tensor::Floats({2}, {1, 2})}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Settings::hazards")));
}

}  // namespace
}  // namespace anemone
