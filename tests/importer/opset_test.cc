// Converts older and newer forms to the working opset, and compares with ONNX Runtime's results for
// the original.
#include "importer/opset/opset.h"

#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

struct Form {
  const char* name;
  int opset;
  const char* graph;
  const char* meaning = nullptr;  // reference at opset 21, if ONNX Runtime does not run the form
};

std::ostream& operator<<(std::ostream& out, const Form& form) { return out << form.name; }

onnx::ModelProto ModelOf(const Form& form) {
  return ParseModel(
      absl::StrCat("<ir_version: 10, opset_import: [\"\" : ", form.opset, "]> g ", form.graph));
}

onnx::ModelProto MeaningOf(const Form& form) {
  return form.meaning == nullptr ? ModelOf(form) : ModelOf({form.name, 21, form.meaning});
}

const Form kForms[] = {
    {"AddAlongAxis", 6,
     "(float[2,3,4,5] a, float[3,4] b) => (float[2,3,4,5] y) { y = Add<broadcast=1, axis=1>(a, b) "
     "}",
     "(float[2,3,4,5] a, float[3,4] b) => (float[2,3,4,5] y) {"
     "  i = Constant<value = int64[1] {2}>() c = Unsqueeze(b, i) y = Add(a, c) }"},
    {"AddAtTheEnd", 6,
     "(float[2,3,4] a, float[3,4] b) => (float[2,3,4] y) { y = Add<broadcast=1>(a, b) }",
     "(float[2,3,4] a, float[3,4] b) => (float[2,3,4] y) { y = Add(a, b) }"},
    {"BatchNormalizationPerActivation", 7,
     "(float[2,3,4] x, float[3,4] s, float[3,4] b, float[3,4] m) => (float[2,3,4] y) {"
     "  v = Abs(s) y = BatchNormalization<spatial=0>(x, s, b, m, v) }"},
    {"CastByName", 5, "(float[2,3] x) => (int32[2,3] y) { y = Cast<to=\"INT32\">(x) }",
     "(float[2,3] x) => (int32[2,3] y) { y = Cast<to=6>(x) }"},
    {"Clip", 6, "(float[2,3] x) => (float[2,3] y) { y = Clip<min=-0.25, max=0.5>(x) }"},
    {"ClipBelow", 6, "(float[2,3] x) => (float[2,3] y) { y = Clip<min=0.0>(x) }"},
    {"ConcatDefaultAxis", 1, "(float[2,3] a, float[2,2] b) => (float[2,5] y) { y = Concat(a, b) }",
     "(float[2,3] a, float[2,2] b) => (float[2,5] y) { y = Concat<axis=1>(a, b) }"},
    {"Dft", 17, "(float[1,8,4,1] x) => (float[1,8,4,2] y) { y = DFT<axis=1>(x) }"},
    {"Dropout", 7, "(float[2,3] x) => (float[2,3] y) { y = Dropout<ratio=0.4>(x) }"},
    {"Gemm", 6,
     "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm<broadcast=1>(a, b, c) "
     "}",
     "(float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm(a, b, c) }"},
    {"GridSample", 16,
     "(float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y) {"
     "  y = GridSample<mode=\"bicubic\">(x, g) }"},
    {"HardmaxFlattened", 11, "(float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax<axis=1>(x) }"},
    {"LogSoftmaxNegativeAxis", 11,
     "(float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax<axis=-2>(x) }"},
    {"SoftmaxFlattened", 9, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }"},
    {"SoftmaxLastAxis", 9, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=2>(x) }"},
    {"SoftmaxOneLongAxis", 9,
     "(float[2,5,1,1] x) => (float[2,5,1,1] y) { y = Softmax<axis=1>(x) }"},
    {"PRelu", 7, "(float[2,3,4,4] x, float[3,1,1] s) => (float[2,3,4,4] y) { y = PRelu(x, s) }"},
    {"PRelu6", 6, "(float[2,3,4,4] x, float[3] s) => (float[2,3,4,4] y) { y = PRelu(x, s) }",
     "(float[2,3,4,4] x, float[3] s) => (float[2,3,4,4] y) {"
     "  i = Constant<value = int64[2] {1, 2}>() t = Unsqueeze(s, i) y = PRelu(x, t) }"},
    {"BatchNormalization6", 6,
     "(float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y) {"
     "  v = Abs(s) y = BatchNormalization<is_test=1>(x, s, b, m, v) }",
     "(float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y) {"
     "  v = Abs(s) y = BatchNormalization(x, s, b, m, v) }"},
    {"Dropout6", 6, "(float[2,3] x) => (float[2,3] y) { y = Dropout<is_test=1>(x) }",
     "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }"},
    {"LpPool1", 1,
     "(float[1,1,4,4] x) => (float[1,1,2,2] y) {"
     "  y = LpPool<p=1.0, kernel_shape=[2,2], strides=[2,2]>(x) }",
     "(float[1,1,4,4] x) => (float[1,1,2,2] y) {"
     "  y = LpPool<p=1, kernel_shape=[2,2], strides=[2,2]>(x) }"},
    {"Pad1", 1, "(float[2,3] x) => (float[3,3] y) { y = Pad<paddings=[1,0,0,0]>(x) }",
     "(float[2,3] x) => (float[3,3] y) { p = Constant<value = int64[4] {1, 0, 0, 0}>()"
     "  y = Pad(x, p) }"},
    {"Reshape1", 1, "(float[2,3] x) => (float[3,2] y) { y = Reshape<shape=[3,-1]>(x) }",
     "(float[2,3] x) => (float[3,2] y) { s = Constant<value = int64[2] {3, 2}>()"
     "  y = Reshape(x, s) }"},
    {"Selu1", 1, "(float[2,3] x) => (float[2,3] y) { y = Selu(x) }",
     "(float[2,3] x) => (float[2,3] y) { y = Selu<alpha=1.6732, gamma=1.0507>(x) }"},
    {"Tile1", 1,
     "(float[2,3] x) => (float[2,6] y) { t = Constant<value = float {2}>()"
     "  a = Constant<value = float {1}>() y = Tile(x, t, a) }",
     "(float[2,3] x) => (float[2,6] y) { y = Concat<axis=1>(x, x) }"},
    {"TopK1", 1, "(float[3,4] x) => (float[3,2] y, int64[3,2] i) { y, i = TopK<k=2, axis=1>(x) }",
     "(float[3,4] x) => (float[3,2] y, int64[3,2] i) { k = Constant<value = int64[1] {2}>()"
     "  y, i = TopK<axis=1>(x, k) }"},
    {"Upsample1", 1,
     "(float[1,1,2,2] x) => (float[1,1,4,6] y) {"
     "  y = Upsample<height_scale=2.0, width_scale=3.0>(x) }",
     "(float[1,1,2,2] x) => (float[1,1,4,6] y) {"
     "  s = Constant<value = float[4] {1, 1, 2, 3}>()"
     "  y = Resize<coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\">(x, , s) "
     "}"},
    {"Pad", 2, "(float[2,3] x) => (float[4,3] y) { y = Pad<pads=[1,0,1,0], value=0.5>(x) }"},
    {"PadReflect", 10,
     "(float[3,3] x) => (float[5,3] y) { y = Pad<pads=[1,0,1,0], mode=\"reflect\">(x) }"},
    {"ReduceMean", 11, "(float[2,3,4] x) => (float[2,1,4] y) { y = ReduceMean<axes=[1]>(x) }"},
    {"ReduceMaxAll", 13, "(float[2,3,4] x) => (float y) { y = ReduceMax<keepdims=0>(x) }"},
    {"ReduceSum", 11,
     "(float[2,3,4] x) => (float[2,4] y) { y = ReduceSum<axes=[1], keepdims=0>(x) }"},
    {"Reshape", 5,
     "(float[2,3] x, int64[1] s) => (float[N] y) {"
     "  shape = Constant<value = int64[1] {6}>() y = Reshape(x, shape) }"},
    {"ResizeGrow", 10,
     "(float[1,1,3,4] x) => (float[1,1,6,8] y) {"
     "  s = Constant<value = float[4] {1, 1, 2, 2}>() y = Resize<mode=\"nearest\">(x, s) }"},
    {"ResizeShrink", 10,
     "(float[1,1,5,6] x) => (float[1,1,3,3] y) {"
     "  s = Constant<value = float[4] {1, 1, 0.6, 0.6}>() y = Resize<mode=\"nearest\">(x, s) }"},
    {"ResizeGrowAndShrink", 10,
     "(float[1,1,5,6] x) => (float[1,1,3,12] y) {"
     "  s = Constant<value = float[4] {1, 1, 0.6, 2}>() y = Resize<mode=\"nearest\">(x, s) }"},
    {"ResizeLinear", 10,
     "(float[1,1,5,6] x) => (float[1,1,10,3] y) {"
     "  s = Constant<value = float[4] {1, 1, 2, 0.5}>() y = Resize<mode=\"linear\">(x, s) }"},
    {"ResizeHalfPixelForNearest", 11,
     "(float[1,1,4,4] x) => (float[1,1,3,2] y) {"
     "  r = Constant<value = float[0] {}>() s = Constant<value = float[0] {}>()"
     "  n = Constant<value = int64[4] {1, 1, 3, 2}>()"
     "  y = Resize<mode=\"nearest\", nearest_mode=\"floor\","
     "             coordinate_transformation_mode=\"tf_half_pixel_for_nn\">(x, r, s, n) }"},
    {"RoiAlign", 10,
     "(float[1,1,8,8] x, int64[1] i) => (float[1,1,2,2] y) {"
     "  r = Constant<value = float[1,4] {1, 1, 5, 6}>() z = Sub(i, i)"
     "  y = RoiAlign<output_height=2, output_width=2>(x, r, z) }"},
    {"Scatter", 9,
     "(float[3,3] x, int64[2,3] i, float[2,3] u) => (float[3,3] y) { y = Scatter<axis=0>(x, i, u) "
     "}"},
    {"Selu", 6, "(float[2,3] x) => (float[2,3] y) { y = Selu(x) }"},
    {"Slice", 9,
     "(float[4,5] x) => (float[2,5] y) { y = Slice<starts=[1], ends=[-1], axes=[0]>(x) }"},
    {"Split", 11,
     "(float[2,6] x) => (float[2,2] a, float[2,4] b) { a, b = Split<axis=1, split=[2,4]>(x) }"},
    {"SplitEqually", 13,
     "(float[2,6] x) => (float[2,3] a, float[2,3] b) { a, b = Split<axis=1>(x) }"},
    {"Squeeze", 11, "(float[2,1,3] x) => (float[2,3] y) { y = Squeeze<axes=[1]>(x) }"},
    {"SqueezeAll", 11, "(float[2,1,3] x) => (float[2,3] y) { y = Squeeze(x) }"},
    {"TopK", 9, "(float[3,4] x) => (float[3,2] y, int64[3,2] i) { y, i = TopK<k=2>(x) }"},
    {"Unsqueeze", 11, "(float[2,3] x) => (float[1,2,3,1] y) { y = Unsqueeze<axes=[0,3]>(x) }"},
    {"Upsample", 7,
     "(float[1,1,2,3] x) => (float[1,1,4,9] y) { y = Upsample<scales=[1.0,1.0,2.0,3.0]>(x) }"},
    {"UpsampleLinear", 9,
     "(float[1,1,2,3] x) => (float[1,1,4,9] y) {"
     "  s = Constant<value = float[4] {1, 1, 2, 3}>() y = Upsample<mode=\"linear\">(x, s) }"},
    {"Gru", 7,
     "(float[3,1,2] x, float[1,6,2] w, float[1,6,2] r) => (float[3,1,1,2] y) {"
     "  y = GRU<hidden_size=2>(x, w, r) }"},
    {"Scan8", 8,
     "(float[2,3] s, float[2,4,3] x) => (float[2,3] f, float[2,4,3] y) {"
     "  f, y = Scan<num_scan_inputs=1, body = b (float[3] si, float[3] xi)"
     "              => (float[3] so, float[3] yo) { so = Add(si, xi) yo = Identity(so) }>(, s, x) "
     "}"},
    {"IfBody", 11,
     "(bool c, float[2,3] x) => (float[N,M] y) {"
     "  y = If(c) <then_branch = t () => (float[N,M] a) { a = Softmax<axis=0>(x) },"
     "            else_branch = e () => (float[N,M] b) { b = Clip(x) }> }"},
    {"MaxPoolCeil", 10,
     "(float[1,1,2,2] x) => (float[1,1,1,1] y) {"
     "  y = MaxPool<ceil_mode=1, kernel_shape=[1,1], strides=[2,2]>(x) }"},
    {"NewerRelabelled", 23, "(float[2,3] x) => (float[2,3] y) { y = Transpose<perm=[0,1]>(x) }"},
    {"NewerPool", 22,
     "(float[1,2,5,5] x) => (float[1,2,2,2] y) { y = AveragePool<kernel_shape=[2,2], "
     "strides=[2,2]>(x) }"},
    {"NewerDequantize", 23,
     "(float[4] x) => (float[4] y) {"
     "  s = Constant<value = float {0.1}>() z = Constant<value = int8 {3}>()"
     "  q = QuantizeLinear(x, s, z) y = DequantizeLinear<output_dtype=0>(q, s, z) }"},
    {"RmsNormalization", 23,
     "(float[2,3,4] x, float[4] w) => (float[2,3,4] y) { y = RMSNormalization(x, w) }"},
    {"RmsNormalizationOfTwoAxes", 23,
     "(float[2,3,4] x, float[3,4] w) => (float[2,3,4] y) {"
     "  y = RMSNormalization<axis=1, epsilon=0.5>(x, w) }"},
    {"RmsNormalizationOfHalves", 23,
     "(float[2,3,4] x, float[4] w) => (float[2,3,4] y) {"
     "  h = Cast<to=10>(x) v = Cast<to=10>(w) z = RMSNormalization(h, v) y = Cast<to=1>(z) }",
     "(float[2,3,4] x, float[4] w) => (float[2,3,4] y) {"
     "  h = Cast<to=10>(x) f = Cast<to=1>(h) e = Constant<value = float {0.00001}>()"
     "  q = Mul(f, f) a = Constant<value = int64[1] {-1}>() m = ReduceMean(q, a) s = Add(m, e)"
     "  r = Sqrt(s) d = Div(f, r) n = Cast<to=10>(d) v = Cast<to=10>(w) z = Mul(n, v)"
     "  y = Cast<to=1>(z) }"},
    {"Attention", 23,
     "(float[2,3,4,5] q, float[2,3,6,5] k, float[2,3,6,2] v) => (float[2,3,4,2] y) {"
     "  y = Attention(q, k, v) }"},
    {"AttentionByFlatHeads", 23,
     "(float[2,4,20] q, float[2,6,10] k, float[2,6,6] v) => (float[2,4,12] y) {"
     "  y = Attention<q_num_heads=4, kv_num_heads=2, scale=0.7, softcap=1.5>(q, k, v) }"},
    {"AttentionOfGroups", 24,
     "(float[1,4,3,5] q, float[1,2,6,5] k, float[1,2,6,5] v) => (float[1,4,3,5] y) {"
     "  y = Attention(q, k, v) }"},
    {"AttentionWithNumbersAsMask", 23,
     "(float[1,2,3,5] q, float[1,2,6,5] k, float[1,2,6,5] v, float[3,6] m)"
     " => (float[1,2,3,5] y) { y = Attention(q, k, v, m) }"},
    {"AttentionWithBooleanMask", 23,
     "(float[1,2,3,5] q, float[1,2,3,5] k, float[1,2,3,5] v, float[1,1,3,3] m)"
     " => (float[1,2,3,5] y) {"
     "  z = Constant<value = float {0}>() n = Greater(m, z)"
     "  d = Constant<value = bool[3,3] {1,0,0,0,1,0,0,0,1}>() b = Or(n, d)"
     "  y = Attention<is_causal=1>(q, k, v, b) }"},
    {"AttentionWithPast", 23,
     "(float[1,2,3,5] q, float[1,2,3,5] k, float[1,2,3,5] v, float[1,2,4,5] a, float[1,2,4,5] b)"
     " => (float[1,2,3,5] y, float[1,2,7,5] c, float[1,2,7,5] d) {"
     "  y, c, d = Attention<is_causal=1>(q, k, v, , a, b) }"},
    {"AttentionThatReturnsScores", 23,
     "(float[1,2,3,5] q, float[1,2,6,5] k, float[1,2,6,5] v)"
     " => (float[1,2,3,5] y, float[1,2,3,6] s) {"
     "  y, , , s = Attention<qk_matmul_output_mode=3>(q, k, v) }"},
    {"Swish", 24, "(float[2,3] x) => (float[2,3] y) { y = Swish<alpha=1.5>(x) }"},
};

class OpsetForm : public testing::TestWithParam<Form> {};

TEST_P(OpsetForm, MeansTheSame) {
  const Model ours = ExpectSameOnOrt(ModelOf(GetParam()), MeaningOf(GetParam()));
  for (const Node& node : ours.graph.nodes) EXPECT_EQ(node.version, kWorkingOpset) << node.op_type;
}

// The lifted nodes must be correct without folding and passes.
TEST_P(OpsetForm, MeansTheSameUnsimplified) {
  ImportOptions options;
  options.simplify = false;
  ExpectSameOnOrt(ModelOf(GetParam()), MeaningOf(GetParam()), options);
}

INSTANTIATE_TEST_SUITE_P(All, OpsetForm, testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

// The model converted to the working opset, without other changes.
absl::StatusOr<Model> Lifted(const Form& form) {
  auto model = Read(ModelOf(form));
  if (!model.ok()) return model;
  const absl::Status status = BringToWorkingOpset(*model);
  if (!status.ok()) return status;
  return model;
}

TEST(Opset, ANodeIsRelabelledWhereOnlyItsNumberIsOld) {
  const auto model = Lifted({"", 13, "(float[2] x) => (float[2] y) { y = Relu(x) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Relu x -> y");
  EXPECT_EQ(model->graph.nodes[0].version, kWorkingOpset);
}

TEST(Opset, NativeFunctionsAreNotExpanded) {
  const auto model =
      Lifted({"", 20,
              "(float[2,3] x, float[3] s) => (float[2,3] y) {"
              "  a = Gelu(x) b = HardSwish(a) c = Mish(b) y = LayerNormalization(c, s) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes.size(), 4);
}

// With known sizes and without a mask, an Attention becomes five nodes, not ONNX's function of 70.
TEST(Opset, AnAttentionOfKnownSizesBecomesFewNodes) {
  const auto model =
      Lifted({"", 23,
              "(float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y) {"
              "  y = Attention(q, k, v) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes.size(), 5);  // Transpose, Mul, MatMul, Softmax, MatMul
}

TEST(Opset, AnAttentionOfFreeSizesBecomesItsFunction) {
  const auto model =
      Lifted({"", 23,
              "(float[1,2,N,4] q, float[1,2,M,4] k, float[1,2,M,4] v) => (float[1,2,N,4] y) {"
              "  y = Attention(q, k, v) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_GT(model->graph.nodes.size(), 30);
}

TEST(Opset, AnExpandedNodeKeepsItsOrigin) {
  const auto model = Lifted({"", 24, "(float[2] x) => (float[2] y) { a = Relu(x) y = Swish(a) }"});
  ASSERT_THAT(model, IsOk());
  ASSERT_GT(model->graph.nodes.size(), 2);
  for (size_t i = 1; i < model->graph.nodes.size(); ++i) {
    EXPECT_THAT(model->graph.nodes[i].origins, testing::ElementsAre(1));
    EXPECT_EQ(model->graph.nodes[i].version, kWorkingOpset);
  }
}

TEST(Opset, ALiftedNodeKeepsItsOrigin) {
  const auto model = Lifted({"", 9, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes.size(), 4);  // Shape, Flatten, Softmax, Reshape
  for (const Node& node : model->graph.nodes) {
    EXPECT_THAT(node.origins, testing::ElementsAre(0));
  }
}

// An operator that the working opset lacks gets the oldest version that has it, since ONNX Runtime
// may not support the file's version.
TEST(Opset, WhatHasNeitherFormNorFunctionBecomesAsOldAsItMay) {
  const auto model = Lifted({"", 28, "(int8[2] x) => (uint8[2] y) { y = BitCast<to=2>(x) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "BitCast x -> y");
  EXPECT_EQ(model->graph.nodes[0].version, 26);
}

TEST(Opset, ATypeTheWorkingOpsetLacksBecomesAsOldAsItMay) {
  const auto model = Lifted({"", 28,
                             "(bfloat16[4] x, int64[1] k) => (bfloat16[M] y, int64[M] i) {"
                             "  y, i = TopK(x, k) }"});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes[0].version, 24);
}

TEST(Opset, WhatStaysNewerSharesAVersion) {
  const auto model = Lifted({"", 28,
                             "(bfloat16[4] x, int64[1] k, int8[2] c) => (bfloat16[M] y, int64[M] i,"
                             " uint8[2] d) { y, i = TopK(x, k) d = BitCast<to=2>(c) }"});
  ASSERT_THAT(model, IsOk());
  for (const Node& node : model->graph.nodes) EXPECT_EQ(node.version, 26);
}

// The output of `graph`, computed by the evaluator with `inputs` as constants.
Tensor ValueOf(Graph graph, const std::map<std::string, Tensor>& inputs) {
  for (ValueId id : graph.inputs) graph.values[id].constant = inputs.at(graph.values[id].name);
  graph.inputs.clear();
  const auto result = MakeEvaluator(TestRuntime())(graph, graph.outputs);
  EXPECT_THAT(result, IsOk());
  return result.ok() ? result->front() : Tensor();
}

template <class T>
std::vector<T> Shifted(const char* type, DataType number, const char* direction,
                       const std::vector<T>& x, const std::vector<T>& by) {
  const std::string text =
      absl::StrCat("(", type, "[N] x, ", type, "[N] s) => (", type,
                   "[N] y) { y = BitShift<direction=\"", direction, "\">(x, s) }");
  const auto model = Lifted({"", 28, text.c_str()});
  EXPECT_THAT(model, IsOk());
  const std::vector<int64_t> dims = {static_cast<int64_t>(x.size())};
  const Tensor y = ValueOf(model->graph, {{"x", Tensor::Of<T>(number, dims, x)},
                                          {"s", Tensor::Of<T>(number, dims, by)}});
  const auto data = y.data<T>();
  return {data.begin(), data.end()};
}

TEST(Opset, ShiftsOfSignedIntegersAndOfAnySize) {
  using testing::ElementsAre;
  EXPECT_THAT(Shifted<int8_t>("int8", DataType::kInt8, "RIGHT", {-128, -1, 127, -128, 127, -5},
                              {1, 7, 3, 8, 100, -1}),
              ElementsAre(-64, -1, 15, -1, 0, -1));
  EXPECT_THAT(
      Shifted<int8_t>("int8", DataType::kInt8, "LEFT", {1, 64, -1, -1, 3}, {7, 1, 4, 8, -2}),
      ElementsAre(-128, -128, -16, 0, 0));
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Shifted<int64_t>("int64", DataType::kInt64, "RIGHT", {kLeast, kLeast, kLeast, 5},
                               {0, 63, 64, kLeast}),
              ElementsAre(kLeast, -1, -1, 0));
  EXPECT_THAT(Shifted<uint64_t>("uint64", DataType::kUInt64, "RIGHT", {~0ull, ~0ull, ~0ull},
                                {63, 64, ~0ull}),
              ElementsAre(1, 0, 0));
  EXPECT_THAT(Shifted<uint16_t>("uint16", DataType::kUInt16, "LEFT", {0xffff, 0xffff}, {4, 16}),
              ElementsAre(0xfff0, 0));
}

// Values of a body are named by a path, which is not an identifier, but ONNX parses the function
// that it builds.
TEST(Opset, PreviewOperatorsBecomeTheirFunctions) {
  onnx::ModelProto proto = ParseModel(R"(<ir_version: 10, opset_import: ["" : 26,
      "ai.onnx.preview" : 1]> g (float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v)
      => (float[1,2,3,4] y) {
        y = ai.onnx.preview.FlexAttention<score_mod = body (float[B,H,L,S] score)
            => (float[B,H,L,S] out) { two = Constant<value = float {2}>() out = Mul(score, two) }>
            (q, k, v) })");
  auto reference = ParseModel(R"(<ir_version: 10, opset_import: ["" : 21]>
      g (float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[1,2,3,4] y) {
        t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) })");
  ExpectSameOnOrt(proto, reference);
}

TEST(Opset, FlooredFloatRemainder) {
  // The sign is the divisor's; opset 21 has only the dividend's.
  const auto model = Lifted({"", 28, "(float[3] a, float[3] b) => (float[3] y) { y = Mod(a, b) }"});
  ASSERT_THAT(model, IsOk());
  const Tensor y = ValueOf(model->graph, {{"a", Tensor::Floats({3}, {-7, 7, 6})},
                                          {"b", Tensor::Floats({3}, {3, -3, 3})}});
  EXPECT_THAT(y.data<float>(), testing::ElementsAre(2, -2, 0));
}

// Opset 21 removed the form, but ONNX Runtime still runs it.
TEST(Opset, GroupNormalizationScalesPerGroup) {
  Model model = ExpectSameOnOrt(ParseModel(R"(<ir_version: 8, opset_import: ["" : 18]>
      g (float[1,4,2] x, float[2] s, float[2] b) => (float[1,4,2] y) {
        y = GroupNormalization<num_groups=2>(x, s, b) })"));
  const Node& last = model.graph.nodes.back();
  EXPECT_EQ(last.op_type, "GroupNormalization");
  EXPECT_EQ(model.graph.values[last.inputs[1]].dims(), std::vector<int64_t>{4});
}

struct Refusal {
  const char* name;
  int opset;
  const char* graph;
  const char* message;
};

const Refusal kRefusals[] = {
    {"AxisThatDoesNotFit", 6,
     "(float[2,3] a, float[3] b) => (float[2,3] y) { y = Add<broadcast=1, axis=2>(a, b) }",
     "node /#0 (Add): attribute 'axis' is 2: an input of rank 1 does not fit there"},
    {"AxisOfUnknownRank", 6,
     "(float[2,3] a, float b) => (float[2,3] y) {"
     "  c = custom.Op(b) y = Add<broadcast=1, axis=0>(a, c) }",
     "the rank of its input 1 is not known"},
    {"SoftmaxAxis", 9, "(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=3>(x) }", "axis"},
    {"SplitSizes", 11,
     "(float[2,6] x) => (float[2,2] a, float[2,4] b) { a, b = Split<axis=1, split=[2,2,2]>(x) }",
     "Split"},
    {"SavedStatistics", 9,
     "(float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3] y, float[3] "
     "sm) {"
     "  y, rm, rv, sm, sv = BatchNormalization(x, s, b, m, v) }",
     "saves the statistics of a training step"},
};

TEST(Opset, RefusesWhatItCannotLift) {
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    onnx::ModelProto proto = ModelOf({refusal.name, refusal.opset, refusal.graph});
    onnx::OperatorSetIdProto* custom = proto.add_opset_import();
    custom->set_domain("custom");
    custom->set_version(1);
    auto model = Read(proto);
    ASSERT_THAT(model, IsOk());
    EXPECT_THAT(BringToWorkingOpset(*model),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(refusal.message)));
  }
}

}  // namespace
}  // namespace anemone
