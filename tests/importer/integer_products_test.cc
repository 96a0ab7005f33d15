// Products of integers that are scaled become products of floats, in every spelling that ONNX
// Runtime's quantizer has written since opset 10. Each model is compared with ONNX Runtime.
#include <random>

#include "tests/importer/against_ort.h"
#include "tests/importer/contrib/contrib_models.h"

namespace anemone {
namespace {

// The tensors that the spellings share. q8 is int8, u8 is uint8. Weights have 7 bits, because ONNX
// Runtime's sums overflow on x86 processors without VNNI.
onnx::ModelProto SpelledModel(const std::string& text, const char* dims, int opset = 13) {
  onnx::ModelProto model =
      ContribModel(absl::StrCat("(float", dims, " x) => (float y) { ", text, " }"), opset);
  const auto number = [&](const char* name, float value) {
    AddInitializer<float>(model, name, onnx::TensorProto::FLOAT, {}, {value});
  };
  number("s", 0.0113f);  // of x, where it is quantized with constants
  number("v", 0.0037f);  // of the weights
  number("sv", 0.0113f * 0.0037f);
  number("f0", 0);
  number("f255", 255);
  number("f127", 127);
  AddInitializer<uint8_t>(model, "z", onnx::TensorProto::UINT8, {}, {117});
  AddInitializer<int8_t>(model, "wz", onnx::TensorProto::INT8, {}, {0});
  AddInitializer<uint8_t>(model, "uz", onnx::TensorProto::UINT8, {}, {131});
  AddInitializer<int8_t>(model, "wz5", onnx::TensorProto::INT8, {5}, {1, 0, -2, 3, 0});
  const std::vector<float> scales = {0.0031f, 0.0042f, 0.0053f, 0.0064f, 0.0075f};
  AddInitializer<float>(model, "v5", onnx::TensorProto::FLOAT, {5}, scales);
  AddInitializer<float>(model, "v15", onnx::TensorProto::FLOAT, {1, 5}, scales);
  AddInitializer<float>(model, "v511", onnx::TensorProto::FLOAT, {5, 1, 1}, scales);
  std::mt19937 random(3);
  const auto codes = [&](const char* name, const std::vector<int64_t>& shape, int type) {
    std::vector<uint8_t> numbers(*ElementCount(shape));
    for (uint8_t& n : numbers) {
      n = static_cast<uint8_t>(static_cast<int>(random() % 127) -
                               (type == onnx::TensorProto::INT8 ? 63 : 0));
    }
    AddInitializer(model, name, type, shape, numbers);
  };
  codes("w", {5, 8, 3, 3}, onnx::TensorProto::INT8);
  codes("w4", {4, 4, 3, 3}, onnx::TensorProto::INT8);
  codes("uw", {5, 8, 3, 3}, onnx::TensorProto::UINT8);
  codes("m", {6, 5}, onnx::TensorProto::INT8);
  codes("um", {6, 5}, onnx::TensorProto::UINT8);
  codes("ul", {5, 3}, onnx::TensorProto::UINT8);  // from the left
  AddInitializer<float>(model, "b", onnx::TensorProto::FLOAT, {5}, {0.5f, -0.25f, 1, 0, 2});
  AddInitializer<int32_t>(model, "ib", onnx::TensorProto::INT32, {1, 5, 1, 1},
                          {9000, -800, 70, 0, 12345});
  AddInitializer<int64_t>(model, "channels", onnx::TensorProto::INT64, {4}, {1, -1, 1, 1});
  return model;
}

struct Spelling {
  const char* name;
  const char* text;
  const char* ops;  // after import
  const char* dims = "[3,6]";
  float most = 1e-5f;
  int opset = 13;
};

std::ostream& operator<<(std::ostream& out, const Spelling& s) { return out << s.name; }

class SpellingTest : public testing::TestWithParam<Spelling> {};

TEST_P(SpellingTest, IsAProductOfFloats) {
  const Spelling& s = GetParam();
  const onnx::ModelProto model = SpelledModel(s.text, s.dims, s.opset);
  const Model ours = ExpectSameOnOrt(model, model, WithEvaluator(), s.most);
  EXPECT_EQ(OpsText(ours.graph), s.ops);
  // The weights were not expanded.
  for (const Node& node : ours.graph.nodes) {
    if (node.op_type != "Conv" && node.op_type != "MatMul") continue;
    for (ValueId id : {node.inputs[0], node.inputs[1]}) {
      const std::optional<Tensor>& constant = ours.graph.values[id].constant;
      EXPECT_TRUE(!constant.has_value() || constant->compressed() != nullptr);
    }
  }
}

constexpr char kDynamicMatMul[] = "DynamicQuantizeLinear DequantizeLinear MatMul";
constexpr char kDynamicConv[] = "DynamicQuantizeLinear DequantizeLinear Conv";
constexpr char kImage[] = "[2,8,6,6]";
// A step of x, times what the weights of a sum add up to.
constexpr float kStepOfMatMul = 0.01f, kStepOfConv = 0.1f;

#define ANEMONE_DYNAMIC "q, h, k = DynamicQuantizeLinear(x) "
#define ANEMONE_MATMUL ANEMONE_DYNAMIC "p = MatMulInteger(q, m, k, wz) c = Cast<to = 1>(p) "
#define ANEMONE_CONV \
  ANEMONE_DYNAMIC "p = ConvInteger<pads = [1,1,1,1]>(q, w, k, wz) c = Cast<to = 1>(p) "
// Opset 10 has no DynamicQuantizeLinear.
#define ANEMONE_OPSET_10                                                             \
  "lo = ReduceMin<keepdims = 0>(x) hi = ReduceMax<keepdims = 0>(x) r = Sub(hi, lo) " \
  "h = Div(r, f255) n = Sub(f0, lo) d = Div(n, h) e = Floor(d) k = Cast<to = 2>(e) " \
  "q = QuantizeLinear(x, h, k) "
#define ANEMONE_SIGNED                                                                           \
  "lo = ReduceMin<keepdims = 0>(x) hi = ReduceMax<keepdims = 0>(x) alo = Abs(lo) ahi = Abs(hi) " \
  "r = Max(alo, ahi) h = Div(r, f127) q = QuantizeLinear(x, h, wz) "
// The bias of a Conv up to ONNX Runtime 1.4.
#define ANEMONE_INTEGER_BIAS                                                                  \
  "bs = Mul(h, v) bd = Div(b, bs) bf = Floor(bd) bi = Cast<to = 6>(bf) "                      \
  "p = ConvInteger<pads = [1,1,1,1]>(q, w, k, wz) br = Reshape(bi, channels) a = Add(p, br) " \
  "c = Cast<to = 1>(a) f = Mul(h, v) y = Mul(c, f)"

const Spelling kSpellings[] = {
    {"MatMul", ANEMONE_MATMUL "f = Mul(h, v) y = Mul(c, f)", kDynamicMatMul},
    {"ScalesBeforeTheProduct",
     ANEMONE_DYNAMIC "f = Mul(v, h) p = MatMulInteger(q, m, k, wz) c = Cast<to = 1>(p) "
                     "y = Mul(f, c)",
     kDynamicMatMul},
    {"ScalesOneByOne", ANEMONE_MATMUL "f = Mul(c, h) y = Mul(f, v)", kDynamicMatMul},
    {"ScalesOneByOneBackwards", ANEMONE_MATMUL "f = Mul(v, c) y = Mul(h, f)", kDynamicMatMul},
    {"ByColumn",
     ANEMONE_DYNAMIC "p = MatMulInteger(q, m, k, wz5) c = Cast<to = 1>(p) f = Mul(h, v5) "
                     "y = Mul(c, f)",
     kDynamicMatMul},
    {"ByColumnOfAMatrix", ANEMONE_MATMUL "f = Mul(h, v15) y = Mul(c, f)", kDynamicMatMul},
    {"ZeroPointsByColumnAlone",
     ANEMONE_DYNAMIC "p = MatMulInteger(q, m, k, wz5) c = Cast<to = 1>(p) f = Mul(h, v) "
                     "y = Mul(c, f)",
     kDynamicMatMul},
    {"WithoutZeroPointOfWeights",
     ANEMONE_DYNAMIC "p = MatMulInteger(q, m, k) c = Cast<to = 1>(p) f = Mul(h, v) y = Mul(c, f)",
     kDynamicMatMul},
    {"Unsigned",
     ANEMONE_DYNAMIC "p = MatMulInteger(q, um, k, uz) c = Cast<to = 1>(p) f = Mul(h, v) "
                     "y = Mul(c, f)",
     kDynamicMatMul},
    {"Batched", ANEMONE_MATMUL "f = Mul(h, v) y = Mul(c, f)", kDynamicMatMul, "[2,3,6]"},
    {"WeightsFromTheLeft",
     ANEMONE_DYNAMIC "p = MatMulInteger(ul, q, uz, k) c = Cast<to = 1>(p) f = Mul(h, v) "
                     "y = Mul(c, f)",
     kDynamicMatMul},
    {"TwoActivations",
     "t = Transpose(x) " ANEMONE_DYNAMIC "q2, h2, k2 = DynamicQuantizeLinear(t) "
     "p = MatMulInteger(q, q2, k, k2) c = Cast<to = 1>(p) f = Mul(h, h2) y = Mul(c, f)",
     "Transpose DynamicQuantizeLinear DynamicQuantizeLinear DequantizeLinear DequantizeLinear "
     "MatMul"},
    {"Static",
     "q = QuantizeLinear(x, s, z) p = MatMulInteger(q, m, z, wz) c = Cast<to = 1>(p) "
     "f = Mul(s, v) y = Mul(c, f)",
     "QuantizeLinear DequantizeLinear MatMul"},
    {"StaticWithOneScale",
     "q = QuantizeLinear(x, s, z) p = MatMulInteger(q, m, z, wz) c = Cast<to = 1>(p) "
     "y = Mul(c, sv)",
     "QuantizeLinear DequantizeLinear MatMul"},
    {"Opset10",
     ANEMONE_OPSET_10 "p = MatMulInteger(q, m, k, wz) c = Cast<to = 1>(p) f = Mul(h, v) "
                      "y = Mul(c, f)",
     "MatMul", "[3,6]", kStepOfMatMul, 10},
    {"Signed",
     ANEMONE_SIGNED "p = MatMulInteger(q, m, wz, wz) c = Cast<to = 1>(p) f = Mul(h, v) "
                    "y = Mul(c, f)",
     "MatMul", "[3,6]", kStepOfMatMul},
    {"Conv", ANEMONE_CONV "f = Mul(h, v) y = Mul(c, f)", kDynamicConv, kImage},
    {"ConvUnsigned",
     ANEMONE_DYNAMIC "p = ConvInteger<strides = [2,2]>(q, uw, k, uz) c = Cast<to = 1>(p) "
                     "f = Mul(h, v) y = Mul(c, f)",
     kDynamicConv, kImage},
    {"ConvInGroups",
     ANEMONE_DYNAMIC "p = ConvInteger<group = 2>(q, w4, k) c = Cast<to = 1>(p) f = Mul(h, v) "
                     "y = Mul(c, f)",
     kDynamicConv, kImage},
    {"ConvByChannel", ANEMONE_CONV "f = Mul(h, v511) y = Mul(c, f)", kDynamicConv, kImage},
    {"ConvWithBias",
     ANEMONE_CONV "f = Mul(h, v) g = Mul(c, f) r = Reshape(b, channels) y = Add(g, r)",
     kDynamicConv, kImage},
    {"ConvWithIntegerBias", ANEMONE_DYNAMIC ANEMONE_INTEGER_BIAS, kDynamicConv, kImage, 1e-4f},
    {"ConvOfOpset10", ANEMONE_OPSET_10 ANEMONE_INTEGER_BIAS, "Conv", kImage, kStepOfConv, 10},
    {"StaticConvWithIntegerBias",
     "q = QuantizeLinear(x, s, z) p = ConvInteger(q, w, z, wz) a = Add(p, ib) c = Cast<to = 1>(a) "
     "f = Mul(s, v) y = Mul(c, f)",
     "QuantizeLinear DequantizeLinear Conv", kImage},
};
INSTANTIATE_TEST_SUITE_P(Quantizer, SpellingTest, testing::ValuesIn(kSpellings),
                         testing::PrintToStringParamName());

struct KeptProduct {
  const char* name;
  const char* text;
  const char* dims = "[3,6]";
};

std::ostream& operator<<(std::ostream& out, const KeptProduct& k) { return out << k.name; }

class KeptProductTest : public testing::TestWithParam<KeptProduct> {};

TEST_P(KeptProductTest, StaysAProductOfIntegers) {
  const Model ours = ExpectSameOnOrt(SpelledModel(GetParam().text, GetParam().dims));
  EXPECT_THAT(OpsText(ours.graph), testing::HasSubstr("Integer"));
}

const KeptProduct kKeptProducts[] = {
    {"TheSumHasAnotherReader",
     ANEMONE_MATMUL "f = Mul(h, v) e = Mul(c, f) d = Cast<to = 1>(p) y = Add(d, e)"},
    {"TheCastHasAnotherReader", ANEMONE_MATMUL "f = Mul(h, v) e = Mul(c, f) y = Add(c, e)"},
    {"AnotherTensorsScale",
     "a = Abs(x) n, o, i = DynamicQuantizeLinear(a) " ANEMONE_MATMUL "f = Mul(o, v) y = Mul(c, f)"},
    {"AnotherZeroPoint",
     ANEMONE_DYNAMIC "p = MatMulInteger(q, m, z, wz) c = Cast<to = 1>(p) f = Mul(h, v) "
                     "y = Mul(c, f)"},
    {"NoScaleOfTheWeights", ANEMONE_MATMUL "y = Mul(c, h)"},
    {"NoScaleOfTheActivation", ANEMONE_MATMUL "y = Mul(c, v)"},
    // ONNX Runtime 1.2 wrote this for per_channel: the scales are those of columns of the image.
    {"ScalesByColumnOfAnImage", ANEMONE_CONV "f = Mul(h, v5) y = Mul(c, f)", "[2,8,5,5]"},
    {"ScalesThatAddAnAxis",
     ANEMONE_DYNAMIC "p = MatMulInteger(q, m, k) c = Cast<to = 1>(p) f = Mul(h, v511) "
                     "y = Mul(c, f)"},
    {"BiasOfAnotherScale",
     ANEMONE_DYNAMIC "bd = Div(b, v) bf = Floor(bd) bi = Cast<to = 6>(bf) "
                     "p = MatMulInteger(q, m, k, wz) a = Add(p, bi) c = Cast<to = 1>(a) "
                     "f = Mul(h, v) y = Mul(c, f)"},
};
INSTANTIATE_TEST_SUITE_P(Other, KeptProductTest, testing::ValuesIn(kKeptProducts),
                         testing::PrintToStringParamName());

// A grid of the range that is not the range of x: its elements are clipped, so the steps are kept.
TEST(IntegerProducts, AGridOfAnotherTensorIsNotDropped) {
  const Model ours = ExpectSameOnOrt(
      SpelledModel("t = Mul(x, s) lo = ReduceMin<keepdims = 0>(t) hi = ReduceMax<keepdims = 0>(t) "
                   "r = Sub(hi, lo) h = Div(r, f255) n = Sub(f0, lo) d = Div(n, h) e = Floor(d) "
                   "k = Cast<to = 2>(e) q = QuantizeLinear(x, h, k) p = MatMulInteger(q, m, k, wz) "
                   "c = Cast<to = 1>(p) f = Mul(h, v) y = Mul(c, f)",
                   "[3,6]"));
  EXPECT_THAT(OpsText(ours.graph), testing::HasSubstr("QuantizeLinear DequantizeLinear MatMul"));
}

// Three products of one activation: it is dequantized once.
TEST(IntegerProducts, OneActivationIsDequantizedOnce) {
  const Model ours = ExpectSameOnOrt(SpelledModel(
      ANEMONE_DYNAMIC
      "f = Mul(h, v) p = MatMulInteger(q, m, k, wz) c = Cast<to = 1>(p) g = Mul(c, f) "
      "p2 = MatMulInteger(q, um, k, uz) c2 = Cast<to = 1>(p2) g2 = Mul(c2, f) y = Add(g, g2)",
      "[3,6]"));
  EXPECT_EQ(OpsText(ours.graph), "DynamicQuantizeLinear DequantizeLinear MatMul MatMul Add");
}

}  // namespace
}  // namespace anemone
