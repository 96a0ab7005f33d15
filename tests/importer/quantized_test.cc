// Compares the plain nodes for quantized operators with ONNX Runtime's kernels, and tests the
// passes for DequantizeLinear.
#include "tests/importer/against_ort.h"
#include "tests/importer/contrib/contrib_models.h"

namespace anemone {
namespace {

struct Expansion {
  const char* name;
  const char* text;  // the nodes between the quantization of x and the dequantization of r
  const char* ops;   // the operators after import
  const char* dims = "float[2,8,6,6]";
  const char* result = "float";
};

std::ostream& operator<<(std::ostream& out, const Expansion& e) { return out << e.name; }

class QuantizedOperatorTest : public testing::TestWithParam<Expansion> {};

// Constants that the cases share: x is quantized by s and z, r by t and u.
onnx::ModelProto QuantizedModel(const Expansion& e) {
  onnx::ModelProto model = ContribModel(absl::StrCat(
      "(", e.dims, " x) => (", e.result, " y) { q = QuantizeLinear(x, s, z) ", e.text, " }"));
  const auto number = [&](const char* name, float value) {
    AddInitializer<float>(model, name, onnx::TensorProto::FLOAT, {}, {value});
  };
  number("s", 0.0113f);
  number("t", 0.0271f);
  number("v", 0.0037f);
  AddInitializer<uint8_t>(model, "z", onnx::TensorProto::UINT8, {}, {117});
  AddInitializer<uint8_t>(model, "u", onnx::TensorProto::UINT8, {}, {131});
  AddInitializer<int8_t>(model, "wz", onnx::TensorProto::INT8, {}, {0});
  AddInitializer<int8_t>(model, "wz5", onnx::TensorProto::INT8, {5}, {0, 0, 0, 0, 0});
  AddInitializer<float>(model, "v5", onnx::TensorProto::FLOAT, {5},
                        {0.0031f, 0.0042f, 0.0053f, 0.0064f, 0.0075f});
  std::mt19937 random(3);
  // Of 7 bits: on x86 processors without VNNI, ONNX Runtime's sums of two products of uint8 and
  // int8 overflow 16 bits otherwise.
  const auto codes = [&](const char* name, const std::vector<int64_t>& dims) {
    std::vector<int8_t> numbers(*ElementCount(dims));
    for (int8_t& n : numbers) n = static_cast<int8_t>(static_cast<int>(random() % 127) - 63);
    AddInitializer(model, name, onnx::TensorProto::INT8, dims, numbers);
  };
  codes("w", {5, 8, 3, 3});
  codes("m", {6, 5});
  AddInitializer<int32_t>(model, "b", onnx::TensorProto::INT32, {5}, {900, -800, 70, 0, 12345});
  return model;
}

TEST_P(QuantizedOperatorTest, MeansWhatOnnxRuntimeMeans) {
  const Model ours = ExpectSameOnOrt(QuantizedModel(GetParam()));
  EXPECT_EQ(ContribNodes(ours.graph), 0);
  EXPECT_EQ(OpsText(ours.graph), GetParam().ops);
}

#define ANEMONE_Q "QuantizeLinear DequantizeLinear "

const Expansion kExpansions[] = {
    {"Conv",
     "r = QLinearConv<pads = [1,1,1,1]>(q, s, z, w, v, wz, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Conv QuantizeLinear DequantizeLinear"},
    {"ConvByChannel",
     "r = QLinearConv<strides = [2,2]>(q, s, z, w, v5, wz5, t, u, b) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Conv QuantizeLinear DequantizeLinear"},
    {"MatMul", "r = QLinearMatMul(q, s, z, m, v, wz, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "MatMul QuantizeLinear DequantizeLinear"},
    {"MatMulByColumn", "r = QLinearMatMul(q, s, z, m, v5, wz5, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "MatMul QuantizeLinear DequantizeLinear", "float[3,6]"},
    {"Add", "r = ms.QLinearAdd(q, s, z, q, s, z, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Add QuantizeLinear DequantizeLinear"},
    {"Mul", "r = ms.QLinearMul(q, s, z, q, s, z, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Mul QuantizeLinear DequantizeLinear"},
    {"Sigmoid", "r = ms.QLinearSigmoid(q, s, z, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Sigmoid QuantizeLinear DequantizeLinear"},
    {"LeakyRelu",
     "r = ms.QLinearLeakyRelu<alpha = 0.3>(q, s, z, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "LeakyRelu QuantizeLinear DequantizeLinear"},
    {"GlobalAveragePool",
     "r = ms.QLinearGlobalAveragePool<channels_last = 0>(q, s, z, t, u) y = DequantizeLinear(r, t, "
     "u)",
     ANEMONE_Q "GlobalAveragePool QuantizeLinear DequantizeLinear"},
    {"Concat",
     "r = ms.QLinearConcat<axis = 1>(t, u, q, s, z, q, s, z) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Concat QuantizeLinear DequantizeLinear"},
    {"Where",
     "c = Greater(x, t) p = ms.QLinearSigmoid(q, s, z, t, u) "
     "r = ms.QLinearWhere(c, q, s, z, p, t, u, v, z) y = DequantizeLinear(r, v, z)",
     "QuantizeLinear Greater DequantizeLinear Sigmoid " ANEMONE_Q
     "Where QuantizeLinear DequantizeLinear"},
    {"Gemm", "r = ms.QGemm(q, s, z, m, v, wz, b, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Gemm QuantizeLinear DequantizeLinear", "float[3,6]"},
    {"GemmToFloat", "y = ms.QGemm<alpha = 0.5>(q, s, z, m, v, wz)", ANEMONE_Q "Gemm", "float[3,6]"},
    // Two in a row: the integers between them disappear.
    {"Chain",
     "a = ms.QLinearAdd(q, s, z, q, s, z, t, u) p = MaxPool<kernel_shape = [2,2]>(a) "
     "r = ms.QLinearSigmoid(p, t, u, s, z) y = DequantizeLinear(r, s, z)",
     ANEMONE_Q "Add " ANEMONE_Q "MaxPool Sigmoid QuantizeLinear DequantizeLinear"},
};
INSTANTIATE_TEST_SUITE_P(Contrib, QuantizedOperatorTest, testing::ValuesIn(kExpansions),
                         testing::PrintToStringParamName());

TEST(Quantized, IntegersThatTheModelReturnsStayExact) {
  const Model ours = ExpectSameOnOrt(QuantizedModel(
      {"", "y = ms.QLinearAdd(q, s, z, q, s, z, t, u)", "", "float[2,8]", "uint8[2,8]"}));
  EXPECT_EQ(OpsText(ours.graph), "QuantizeLinear QLinearAdd");
  EXPECT_THAT(ours.warnings.at(0).message, testing::HasSubstr("an output of the model"));
}

// Moved integers with two readers.
TEST(Quantized, WhatIsReadTwiceIsDequantizedOnce) {
  const Model ours = ExpectSameOnOrt(
      QuantizedModel({"",
                      "p = MaxPool<kernel_shape = [2,2]>(q) a = ms.QLinearSigmoid(p, s, z, t, u) "
                      "r = ms.QLinearAdd(p, s, z, a, t, u, t, u) y = DequantizeLinear(r, t, u)",
                      ""}));
  EXPECT_EQ(OpsText(ours.graph), ANEMONE_Q "MaxPool Sigmoid " ANEMONE_Q
                                           "Add QuantizeLinear "
                                           "DequantizeLinear");
}

// The axis, which differs, means nothing: there is one scale.
TEST(Quantized, WhatAnOperatorAndANodeDequantizeIsDequantizedOnce) {
  const Model ours = ExpectSameOnOrt(QuantizedModel(
      {"",
       "a = DequantizeLinear(q, s, z) d = HardSigmoid(a) c = QuantizeLinear(d, t, u) "
       "r = ms.QLinearMul(q, s, z, c, t, u, t, u) y = DequantizeLinear(r, t, u)",
       ""}));
  EXPECT_EQ(OpsText(ours.graph), ANEMONE_Q "HardSigmoid " ANEMONE_Q
                                           "Mul QuantizeLinear "
                                           "DequantizeLinear");
}

TEST(Quantized, ProductsOfFusedFormsAreOfFloats) {
  EXPECT_EQ(OpsText(ExpectSameOnOrt(QuantizedModel({"", "y = ms.DynamicQuantizeMatMul(x, m, v, wz)",
                                                    "", "float[3,6]"}))
                        .graph),
            "DynamicQuantizeLinear DequantizeLinear MatMul");
  EXPECT_EQ(
      OpsText(ExpectSameOnOrt(QuantizedModel({"", "y = ms.MatMulIntegerToFloat(q, m, s, v, z, wz)",
                                              "", "float[3,6]"}))
                  .graph),
      "QuantizeLinear DequantizeLinear MatMul");
}

// Every operator that moves elements moves floats, so that the integers are dequantized first.
TEST(Quantized, EveryMoveIsOfFloats) {
  const std::pair<const char*, const char*> kMoves[] = {
      {"GatherElements",
       "i = Constant<value = int64[1,6] {2, 0, 1, 1, 0, 2}>() "
       "p = GatherElements(q, i)"},
      {"GatherND", "i = Constant<value = int64[2,1] {2, 0}>() p = GatherND(q, i)"},
      {"Transpose", "p = Transpose(q)"},
  };
  for (const auto& [op, move] : kMoves) {
    const std::string text =
        absl::StrCat(move, " r = ms.QLinearSigmoid(p, s, z, t, u) y = DequantizeLinear(r, t, u)");
    const Model ours = ExpectSameOnOrt(QuantizedModel({"", text.c_str(), "", "float[3,6]"}));
    EXPECT_EQ(OpsText(ours.graph),
              absl::StrCat(ANEMONE_Q, op, " Sigmoid QuantizeLinear DequantizeLinear"));
  }
}

struct MoveCase {
  const char* name;
  const char* text;
  const char* ops;
  const char* result = "float";
};

std::ostream& operator<<(std::ostream& out, const MoveCase& c) { return out << c.name; }

class QuantizedMoveTest : public testing::TestWithParam<MoveCase> {};

TEST_P(QuantizedMoveTest, MeansWhatOnnxRuntimeMeans) {
  const Model ours = ExpectSameOnOrt(
      QuantizedModel({"", GetParam().text, "", "float[2,8,6,6]", GetParam().result}));
  EXPECT_EQ(OpsText(ours.graph), GetParam().ops);
}

#define ANEMONE_END "QuantizeLinear DequantizeLinear"
#define ANEMONE_SPLIT "h = Constant<value = int64[3] {2, 3, 3}>() "
#define ANEMONE_PAD "k = Constant<value = int64[8] {0, 0, 1, 2, 0, 0, 2, 1}>() "
#define ANEMONE_RESIZE "k = Constant<value = float[4] {1, 1, 2, 1.5}>() "

const MoveCase kMoveCases[] = {
    // The operators after Split read its second and third output first.
    {"Split",
     ANEMONE_SPLIT
     "o, p, n = Split<axis = 1>(q, h) r = ms.QLinearAdd(n, s, z, p, s, z, t, u) "
     "w1 = DequantizeLinear(o, s, z) w2 = DequantizeLinear(r, t, u) y = Concat<axis = 1>(w1, w2)",
     ANEMONE_Q "Split Add QuantizeLinear DequantizeLinear Concat"},
    {"SplitWithAnUnusedOutput",
     ANEMONE_SPLIT "o, p, n = Split<axis = 1>(q, h) r = ms.QLinearAdd(n, s, z, p, s, z, t, u) "
                   "y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Split Add QuantizeLinear DequantizeLinear"},
    {"SplitToTwoGrids",
     ANEMONE_SPLIT "o, p, n = Split<axis = 1>(q, h) r = ms.QLinearAdd(n, s, z, p, t, z, t, u) "
                   "y = DequantizeLinear(r, t, u)",
     "QuantizeLinear Split DequantizeLinear DequantizeLinear Add QuantizeLinear DequantizeLinear"},
    {"SplitWhoseIntegersAreReturned",
     ANEMONE_SPLIT "o, y, n = Split<axis = 1>(q, h) r = ms.QLinearSigmoid(n, s, z, t, u)",
     "QuantizeLinear Split", "uint8"},
    {"Pad",
     ANEMONE_PAD "p = Pad(q, k, z) r = ms.QLinearSigmoid(p, s, z, t, u) "
                 "y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Pad Sigmoid QuantizeLinear DequantizeLinear"},
    {"PadWithAnotherNumber",
     ANEMONE_PAD "p = Pad(q, k, u) r = ms.QLinearSigmoid(p, s, z, t, u) "
                 "y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Pad Sigmoid QuantizeLinear DequantizeLinear"},
    {"PadWithTheIntegerZero",
     ANEMONE_PAD "p = Pad(q, k) r = ms.QLinearSigmoid(p, s, z, t, u) y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Pad Sigmoid QuantizeLinear DequantizeLinear"},
    {"PadByReflection",
     ANEMONE_PAD "p = Pad<mode = \"reflect\">(q, k) r = ms.QLinearSigmoid(p, s, z, t, u) "
                 "y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Pad Sigmoid QuantizeLinear DequantizeLinear"},
    {"PadOnTheGrid",
     ANEMONE_PAD "a = DequantizeLinear(q, s, z) p = Pad(a, k) d = QuantizeLinear(p, s, z) "
                 "y = DequantizeLinear(d, s, z)",
     ANEMONE_Q "Pad"},
    {"PadBesideTheGrid",
     ANEMONE_PAD "a = DequantizeLinear(q, s, z) p = Pad(a, k, t) d = QuantizeLinear(p, s, z) "
                 "y = DequantizeLinear(d, s, z)",
     ANEMONE_Q "Pad QuantizeLinear DequantizeLinear"},
    {"ResizeToTheNearest",
     ANEMONE_RESIZE "p = Resize<mode = \"nearest\">(q, , k) r = ms.QLinearSigmoid(p, s, z, t, u) "
                    "y = DequantizeLinear(r, t, u)",
     ANEMONE_Q "Resize Sigmoid QuantizeLinear DequantizeLinear"},
    {"NanGuard", "a = DequantizeLinear(q, s, z) d = Transpose(a) n = IsNaN(d) y = Where(n, t, d)",
     ANEMONE_Q "Transpose"},
    {"NanGuardOfAFloat", "n = IsNaN(x) y = Where(n, t, x)", "IsNaN Where"},
    {"NanGuardWithAnotherValue", "a = DequantizeLinear(q, s, z) n = IsNaN(a) y = Where(n, a, x)",
     ANEMONE_Q "IsNaN Where"},
};
INSTANTIATE_TEST_SUITE_P(Quantized, QuantizedMoveTest, testing::ValuesIn(kMoveCases),
                         testing::PrintToStringParamName());

// Scale and zero point change, so no node may be removed.
TEST(Quantized, AnotherGridIsRoundedToAgain) {
  const Model ours = ExpectSameOnOrt(QuantizedModel(
      {"",
       "a = DequantizeLinear(q, s, z) p = QuantizeLinear(a, t, u) y = DequantizeLinear(p, t, u)",
       "", "float[3,6]"}));
  EXPECT_EQ(OpsText(ours.graph), ANEMONE_Q "QuantizeLinear DequantizeLinear");
}

// Its scales and zero points do not follow their operands.
TEST(Quantized, AFusedProductIsReadLikeTheOthers) {
  struct {
    const char* dims;
    const char* scales;
    const char* why;  // "" if it is expanded
  } const kForms[] = {
      {"float[3,6]", "s, v5, z, wz5", ""},
      {"float[3,6]", "s, v5, z, wz", "the numbers of scales and zero points differ"},
      {"float[3,6]", "v5, v, z, wz", "want one scale, or one for each column"},
      {"float[n,6]", "s, v, z, wz", "the shape of 'q' is not known"}};
  for (const auto& form : kForms) {
    const std::string text = absl::StrCat("y = ms.MatMulIntegerToFloat(q, m, ", form.scales, ")");
    const onnx::ModelProto model = QuantizedModel({"", text.c_str(), "", form.dims});
    if (absl::string_view(form.why).empty()) {
      EXPECT_EQ(ContribNodes(ExpectSameOnOrt(model).graph), 0);
      continue;
    }
    const auto kept = ImportBytes(model.SerializeAsString(), "", WithEvaluator());
    ASSERT_THAT(kept, IsOk());
    EXPECT_EQ(ContribNodes(kept->graph), 1) << text;
    ASSERT_EQ(kept->warnings.size(), 1) << text;
    EXPECT_THAT(kept->warnings[0].message, testing::HasSubstr(form.why));
  }
}

}  // namespace
}  // namespace anemone
