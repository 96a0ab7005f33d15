// Tests the bounds of floats that are known before a graph runs, one line per rule, and which
// values may be clamped.
#include "importer/operators/float_ranges.h"

#include "importer/operators/beyond_ranges.h"
#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

struct RangeCase {
  const char* name;
  const char* text;  // a graph; the test checks its last output
  const char* want;  // "low..high", or "unknown"
};

std::ostream& operator<<(std::ostream& out, const RangeCase& c) { return out << c.name; }

class FloatRangeTest : public testing::TestWithParam<RangeCase> {};

FloatFacts FactsOf(const Graph& graph) { return FloatFactsOf(graph, IntegerRangesOf(graph)); }

TEST_P(FloatRangeTest, IsKnown) {
  auto model = ImportBytes(ParseModel(GetParam().text).SerializeAsString(), "", {});
  ASSERT_THAT(model, IsOk());
  const FloatFacts facts = FactsOf(model->graph);
  const ValueId last = model->graph.outputs.back();
  const Bounds& b = facts.bounds[last];
  EXPECT_EQ(facts.IsKnown(last) ? absl::StrCat(b.low, "..", b.high) : "unknown", GetParam().want);
}

const RangeCase kCases[] = {
    {"Input", "g (float[4] x) => (float[4] y) { y = Relu(x) }", "unknown"},
    {"Bytes", "g (uint8[4] x) => (float[4] y) { y = Cast<to = 1>(x) }", "0..255"},
    {"WideInteger", "g (int32[4] x) => (float[4] y) { y = Cast<to = 1>(x) }", "unknown"},
    {"WiderInteger", "g (int32[4] x) => (float[4] y) { a = Cast<to = 7>(x) y = Cast<to = 1>(a) }",
     "unknown"},
    {"SmallPartOfAWideInteger",
     "g (int64[4] x) => (float[4] y) <int64 a = {0}, int64 b = {9}> "
     "{ c = Clip(x, a, b) y = Cast<to = 1>(c) }",
     "0..9"},
    {"LargePartOfAWideInteger",
     "g (int64[4] x) => (float[4] y) <int64 a = {0}, int64 b = {1000000}> "
     "{ c = Clip(x, a, b) y = Cast<to = 1>(c) }",
     "unknown"},
    {"Matrix",
     "g (uint8[4,100] a) => (float[4,2] y) <int64[2] n = {100, 2}> "
     "{ w = ConstantOfShape<value = int8[1] {1}>(n) b = MatMulInteger(a, w) y = Cast<to = 1>(b) }",
     "0..25500"},
    {"MatrixWithZeroPoints",
     "g (uint8[4,100] a, uint8 z) => (float[4,2] y) <int64[2] n = {100, 2}, int8 v = {3}> "
     "{ w = ConstantOfShape<value = int8[1] {1}>(n) b = MatMulInteger(a, w, z, v) y = Cast<to = "
     "1>(b) }",
     "-51000..51000"},
    {"Filters",
     "g (uint8[1,3,8,8] a) => (float[1,2,6,6] y) <int64[4] n = {2, 3, 3, 3}> "
     "{ w = ConstantOfShape<value = int8[1] {-2}>(n) b = ConvInteger(a, w) y = Cast<to = 1>(b) }",
     "-13770..0"},
    {"Product",
     "g (uint8[4] x) => (float[4] y) <float k = {-1000}> { a = Cast<to = 1>(x) y = Mul(a, k) }",
     "-255000..0"},
    {"Sum", "g (uint8[4] x) => (float[4] y) <float k = {3}> { a = Cast<to = 1>(x) y = Add(a, k) }",
     "3..258"},
    {"Sigmoid", "g (float[4] x) => (float[4] y) { y = Sigmoid(x) }", "0..1"},
    {"Tanh", "g (float[4] x) => (float[4] y) { y = Tanh(x) }", "-1..1"},
    {"Softmax", "g (float[2,4] x) => (float[2,4] y) { y = Softmax(x) }", "0..1"},
    {"Relu6", "g (float[4] x) => (float[4] y) <float a = {0}, float b = {6}> { y = Clip(x, a, b) }",
     "0..6"},
    {"MinOfRelu", "g (float[4] x) => (float[4] y) <float k = {6}> { a = Relu(x) y = Min(a, k) }",
     "0..6"},
    {"ClipToLargeLimits",
     "g (float[4] x) => (float[4] y) <float a = {-1e9}, float b = {1e9}> { y = Clip(x, a, b) }",
     "unknown"},
    {"SumOfElements",
     "g (uint8[4,300] x) => (float[4,1] y) <int64[1] k = {1}> "
     "{ a = Cast<to = 1>(x) y = ReduceSum(a, k) }",
     "0..76500"},
    {"SumOfShares",
     "g (float[4,300] x) => (float[4,1] y) <int64[1] k = {1}> "
     "{ a = Softmax(x) y = ReduceSum(a, k) }",
     "unknown"},
    {"MeanOfElements",
     "g (uint8[4,300] x) => (float[4,1] y) <int64[1] k = {1}> "
     "{ a = Cast<to = 1>(x) y = ReduceMean(a, k) }",
     "0..255"},
    {"Mask",
     "g (bool[4] x) => (float[4] y) <float k = {-1e9}> { a = Cast<to = 1>(x) y = Mul(a, k) }",
     "-1e+09..0"},
    {"ChosenNumber",
     "g (bool[4] c) => (float[4] y) <float k = {-1e9}, float l = {0}> { y = Where(c, k, l) }",
     "unknown"},
    {"Dequantized",
     "g (uint8[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {100}> "
     "{ y = DequantizeLinear(x, s, z) }",
     "-50..77.5"},
    {"DequantizedByChannel",
     "g (int8[4,2] x) => (float[4,2] y) <float[2] s = {1, 1000}> "
     "{ y = DequantizeLinear<axis = 1>(x, s) }",
     "-128000..127000"},
    {"DequantizedByAComputedScale",
     "g (int8[4] x, float s) => (float[4] y) { y = DequantizeLinear(x, s) }", "unknown"},
    {"QuantizedAndBack",
     "g (float[4] x) => (float[4] y) <float s = {2}, int8 z = {0}> "
     "{ a = QuantizeLinear(x, s, z) y = DequantizeLinear(a, s, z) }",
     "-256..254"},
    {"OneHot",
     "g (int64[4] x) => (float[4,3] y) <int64 d = {3}, float[2] v = {-2, 5}> "
     "{ y = OneHot(x, d, v) }",
     "-2..5"},
    {"LargestOfBytes",
     "g (uint8[9] x) => (int64[2] i, float[2] y) <int64[1] k = {2}> "
     "{ a = Cast<to = 1>(x) y, i = TopK(a, k) }",
     "0..255"},
    {"Moved",
     "g (uint8[2,2] x) => (float[4] y) <int64[1] k = {4}> "
     "{ a = Cast<to = 1>(x) b = Transpose(a) y = Reshape(b, k) }",
     "0..255"},
};
INSTANTIATE_TEST_SUITE_P(FloatRanges, FloatRangeTest, testing::ValuesIn(kCases),
                         testing::PrintToStringParamName());

// Whether value `m` may be clamped, and a constant in its place.
std::string FlatText(const std::string& text) {
  auto model = ImportBytes(ParseModel(text).SerializeAsString(), "", {});
  if (!model.ok()) return std::string(model.status().message());
  const FloatFacts facts = FactsOf(model->graph);
  const BeyondFacts beyond(model->graph, facts);
  for (size_t i = 0; i < model->graph.values.size(); ++i) {
    if (model->graph.values[i].name != "m") continue;
    return beyond.flat()[i] ? "flat" : beyond.flat_for_constants()[i] ? "for constants" : "no";
  }
  return "no value m";
}

TEST(FloatRanges, KnowsWhatReadersDoWithLargeNumbers) {
  EXPECT_EQ(FlatText("g (float[4] m, float[4] s) => (float[4] y) { a = Add(s, m) y = Softmax(a) }"),
            "flat");
  EXPECT_EQ(FlatText("g (float[2,2] m, float[2,2] s) => (float[2,2] y) "
                     "{ t = Transpose(m) a = Add(s, t) y = Softmax(a) }"),
            "flat");
  EXPECT_EQ(FlatText("g (float[4] m) => (float y) { y = ReduceMax<keepdims = 0>(m) }"),
            "for constants");
  EXPECT_EQ(FlatText("g (float[4] m, float[4] s) => (float[4] y) { a = Mul(s, m) y = Softmax(a) }"),
            "no");
  EXPECT_EQ(FlatText("g (float[4] m, float[4] s) => (float[4] y, float[4] z) "
                     "{ a = Add(s, m) y = Softmax(a) z = Neg(m) }"),
            "no");
  EXPECT_EQ(FlatText("g (float[4] m) => (float[4] m, float[4] y) { y = Softmax(m) }"), "no");
  // A grid whose ends fp16 holds clips them; a coarser one tells them apart.
  for (const auto& [scale, answer] : {std::pair("200", "flat"), std::pair("300", "no")}) {
    EXPECT_EQ(FlatText(absl::StrCat("g (float[4] m) => (uint8[4] y) <float s = {", scale,
                                    "}> { y = QuantizeLinear(m, s) }")),
              answer);
  }
  // A division of a mask by a usual number.
  EXPECT_EQ(FlatText("g (float[4] m, float[4] s) => (float[4] y) <float k = {8}> "
                     "{ a = Add(s, m) b = Div(a, k) y = Softmax(b) }"),
            "flat");
  EXPECT_EQ(FlatText("g (float[4] m, float[4] s) => (float[4] y) <float k = {-8}> "
                     "{ a = Add(s, m) b = Div(a, k) y = Softmax(b) }"),
            "no");
  EXPECT_EQ(FlatText("g (float[4] m) => (float[4] y) <float k = {8}> { y = Div(m, k) }"), "no");
  // A mask that another mask of 0 and 1 cuts.
  EXPECT_EQ(FlatText("g (float[4] m, bool[4] c, float[4] s) => (float[4] y) "
                     "{ b = Cast<to = 1>(c) a = Mul(m, b) d = Add(s, a) y = Softmax(d) }"),
            "flat");
  EXPECT_EQ(FlatText("g (float[4] m, float[4] c, float[4] s) => (float[4] y) "
                     "{ b = Sigmoid(c) a = Mul(m, b) d = Add(s, a) y = Softmax(d) }"),
            "no");
}

// Numbers beyond fp16's range that the last output is known to have: "low..high", or "none".
std::string BeyondText(const std::string& text) {
  auto model = ImportBytes(ParseModel(text).SerializeAsString(), "", {});
  if (!model.ok()) return std::string(model.status().message());
  const FloatFacts facts = FactsOf(model->graph);
  const BeyondFacts beyond(model->graph, facts);
  const ValueId last = model->graph.outputs.back();
  if (!beyond.IsBeyond(last)) return "none";
  const Bounds& b = beyond.NumbersOf(last);
  return absl::StrCat(b.low, "..", b.high);
}

std::string AfterMask(const std::string& nodes, const std::string& constants = "float k = {2}") {
  return BeyondText("g (bool[2,4] m, float[2,4] x, float[2,4] z) => (y) <float f = {-1e9}, " +
                    constants + "> { d = Where(m, x, f) " + nodes + " }");
}

TEST(FloatRanges, FollowsTheNumbersOfMasks) {
  EXPECT_EQ(AfterMask("y = Identity(d)"), "-1e+09..0");
  EXPECT_EQ(AfterMask("y = Add(d, z)"), "-1e+09..0");
  EXPECT_EQ(AfterMask("y = Sub(z, d)"), "0..1e+09");
  EXPECT_EQ(AfterMask("y = Mul(d, k)"), "-2e+09..0");
  EXPECT_EQ(AfterMask("y = LogSoftmax(d)"), "-1e+09..0");
  EXPECT_EQ(AfterMask("y = ReduceMin<keepdims = 0>(d)"), "-1e+09..0");
  EXPECT_EQ(AfterMask("y = Concat<axis = 0>(z, d)"), "-1e+09..0");
  EXPECT_EQ(AfterMask("y = LeakyRelu(d)"), "-1e+09..0");
  // The numbers end here.
  EXPECT_EQ(AfterMask("y = Softmax(d)"), "none");
  EXPECT_EQ(AfterMask("y = Relu(d)"), "none");
  EXPECT_EQ(AfterMask("y = Sigmoid(d)"), "none");
  EXPECT_EQ(AfterMask("y = Max(d, k)"), "none");
  EXPECT_EQ(AfterMask("y = ReduceMax<keepdims = 0>(d)"), "none");
  EXPECT_EQ(AfterMask("y = Mul(d, k)", "float k = {1e-5}"), "none");
  EXPECT_EQ(AfterMask("y = Mul(d, z)"), "none");
}

TEST(FloatRanges, KnowsWhichConstantsNoFactorsHold) {
  EXPECT_EQ(BeyondText("g (float[4] x) => (float[4] y) <float k = {1000000}> { y = Mul(x, k) }"),
            "none");
  EXPECT_EQ(BeyondText("g (float[4] x) => (float[4] y) <float k = {1e12}> { y = Mul(x, k) }"),
            "0..1e+12");
  EXPECT_EQ(BeyondText("g (float[2,2] x) => (float[2,1] y) <float[2,1] k = {1, 1e6}> "
                       "{ y = MatMul(x, k) }"),
            "-1e+06..1e+06");
  EXPECT_EQ(BeyondText("g (float[4] x) => (float[4] y) { y = Elu<alpha = 1e5>(x) }"),
            "-100000..100000");
  EXPECT_EQ(BeyondText("g (float[4] x) => (float[4] y) <float k = {-3.4e38}> { y = Max(x, k) }"),
            "none");
}

}  // namespace
}  // namespace anemone
