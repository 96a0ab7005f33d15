#include "importer/infer/infer.h"

#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

// The model of `text` with inferred types and shapes; outputs in `text` should have unknown shapes.
absl::StatusOr<Model> Inferred(absl::string_view text) {
  auto model = Read(ParseModel(text));
  if (!model.ok()) return model;
  const absl::Status status = Inference(*model, {}).InferGraph(model->graph);
  if (!status.ok()) return status;
  return model;
}

// Type and shape of the value `name`, such as "float32 2x3xN"; "?" for unknown parts.
std::string TypeText(const Graph& graph, absl::string_view name) {
  const Value& value = ValueNamed(graph, name);
  std::string text(DataTypeName(value.type));
  if (!value.shape.has_value()) return text + " ?";
  for (size_t i = 0; i < value.shape->size(); ++i) {
    const Dim& dim = (*value.shape)[i];
    absl::StrAppend(&text, i == 0 ? " " : "x",
                    dim.known()          ? absl::StrCat(dim.size)
                    : dim.symbol.empty() ? "?"
                                         : dim.symbol);
  }
  return text;
}

TEST(Infer, FollowsSizesAndSymbols) {
  const auto model = Inferred(
      "g (float[N,3,8,8] x, float[4,3,3,3] w) => (float[] y) { a = Conv(x, w) b = Relu(a)"
      "  y = GlobalAveragePool(b) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "a"), "float32 Nx4x6x6");
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 Nx4x1x1");
}

// ONNX has no inference function for it, and a function body that depends on the node.
TEST(Infer, KnowsGroupNormalization) {
  const auto model = Inferred(
      "g (float[N,4,8,8] x, float[4] s) => (float[] y) {"
      "  a = GroupNormalization<num_groups = 2>(x, s, s) y = Relu(a) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 Nx4x8x8");
}

TEST(Infer, FollowsShapeArithmetic) {
  // The usual nodes of exporters: reshape to the batch of x and -1.
  const auto model = Inferred(
      "g (float[N,3,8,8] x) => (float[] y) {"
      "  shape = Shape(x) i = Constant<value = int64 {0}>() batch = Gather(shape, i)"
      "  axes = Constant<value = int64[1] {0}>() b = Unsqueeze(batch, axes)"
      "  rest = Constant<value = int64[2] {24, -1}>() s = Concat<axis=0>(b, rest)"
      "  y = Reshape(x, s) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 Nx24x?");
}

TEST(Infer, BodiesSeeTheTypesAroundThem) {
  const auto model = Inferred(
      "g (bool c, float[2,3] x) => (float[] y) {"
      "  y = If(c) <then_branch = t () => (float[] a) { a = Relu(x) },"
      "             else_branch = e () => (float[] b) { b = Neg(x) }> }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 2x3");
  const Graph& body = *BodiesOf(model->graph.nodes[0])[0];
  EXPECT_EQ(body.values[body.outputs[0]].dims(), (std::vector<int64_t>{2, 3}));
}

TEST(Infer, ScanOutputsAreStacked) {
  const auto model = Inferred(
      "g (float[3] s, float[5,3] x) => (float[] f, float[] y) {"
      "  f, y = Scan<num_scan_inputs=1, body = b (float[3] si, float[3] xi) => (float[] so, "
      "float[] yo)"
      "              { so = Add(si, xi) yo = Neg(so) }>(s, x) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 5x3");
}

TEST(Infer, BehindAnUnknownOperatorNothingIsWrong) {
  const auto model = Inferred(
      "<ir_version: 10, opset_import: [\"\" : 21, \"custom\" : 1]>"
      "g (float[2,3] x) => (float[] y) { a = custom.Op(x) b = Relu(a) c = MatMul(b, x) y = Neg(c) "
      "}");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "b"), "undefined ?");
}

TEST(Infer, ADeclaredShapeGivesWayWithAWarning) {
  const auto model = Inferred("g (float[2,3] x) => (float[2,4] y) { y = Relu(x) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 2x3");
  ASSERT_EQ(model->warnings.size(), 1);
  EXPECT_EQ(model->warnings[0].rule, "shape-conflict");
  EXPECT_THAT(model->warnings[0].message,
              HasSubstr("declared [2, 4], but the inferred shape is [2, 3]"));
}

TEST(Infer, LongNamesOfExportersAreNotInTheWarning) {
  const std::string name(100, 'v');
  const auto model = Inferred(absl::StrCat("g (float[2,3] x) => (float[", std::string(100, 'd'),
                                           ",4] ", name, ") { ", name, " = Relu(x) }"));
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->warnings.size(), 1);
  EXPECT_EQ(model->warnings[0].message,
            "output 0 is declared [?, 4], but the inferred shape is [2, 3]");
}

TEST(Infer, ADeclaredSizeFillsWhatInferenceLeavesOpen) {
  const auto model =
      Inferred("g (float[2,3] x, int64[2] s) => (float[6,1] y) { y = Reshape(x, s) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(TypeText(model->graph, "y"), "float32 6x1");
}

TEST(Infer, AWrongBranchIsAWarning) {
  const auto model = Inferred(
      "g (bool c, float[2,3] x) => (float[] y) {"
      "  y = If(c) <then_branch = t () => (float[] a) { a = Relu(x) },"
      "             else_branch = e () => (float[] b) { b = MatMul(x, x) }> }");
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->warnings.size(), 1);
  EXPECT_EQ(model->warnings[0].rule, "unreachable-branch");
  EXPECT_EQ(model->warnings[0].where, "/else_branch:If_0/#0");
}

struct Wrong {
  const char* name;
  const char* text;
  const char* message;
};

const Wrong kWrong[] = {
    {"MatMul", "g (float[2,3] a, float[4,5] b) => (float[] y) { y = MatMul(a, b) }",
     "node /#0 (MatMul)"},
    {"Broadcast", "g (float[2,3] a, float[4] b) => (float[] y) { y = Add(a, b) }",
     "node /#0 (Add)"},
    {"ZeroStrides",
     "g (float[1,1,4,4] x, float[1,1,1,1] w) => (float[] y) { y = Conv<strides=[0,1]>(x, w) }",
     "strides"},
    {"Groups", "g (float[1,6,4,4] x, float[4,2,1,1] w) => (float[] y) { y = Conv<group=2>(x, w) }",
     "input 0 'x' has 6 channels, but weight 'w' takes 2 in each of 2 groups"},
    {"Filters", "g (float[1,6,4,4] x, float[4,2,1,1] w) => (float[] y) { y = Conv<group=3>(x, w) }",
     "weight 'w' has 4 filters, which is not a multiple of 3 groups"},
    {"NoGroups",
     "g (float[1,6,4,4] x, float[4,2,1,1] w) => (float[] y) { y = Conv<group=0>(x, w) }", "group"},
    {"Type", "g (int32[1,1,4] x, int32[1,1,1] w) => (int32 y) { y = Conv(x, w) }",
     "input 0 'x' is tensor(int32); want one of tensor(double), tensor(float), tensor(float16)"},
    {"MixedTypes", "g (float[2] a, double[2] b) => (float[] y) { y = Add(a, b) }",
     "input 1 'b' is tensor(double), but an earlier input of the same type parameter is "
     "tensor(float)"},
    {"DeclaredType", "g (float[2] a) => (int32 y) { y = Relu(a) }",
     "output 'y' is declared int32, but its inferred type is float32"},
    // Crashed in ONNX's inference function.
    {"AxisBeyond32Bits",
     "g (float[2,3] x, float[3] s) => (float[] y, float[] m) {"
     "  y, m = LayerNormalization<axis=9223372036854775807>(x, s) }",
     "attribute 'axis' is 9223372036854775807, which is out of range"},
    {"Axis", "g (float[2,3] a, float[2,3] b) => (float[] y) { y = Concat<axis=5>(a, b) }",
     "node /#0 (Concat)"},
    // Code that relied on the rank indexed past the end.
    {"ShortPermutation", "g (float[3,4,5] x) => (float[] y) { y = Transpose<perm=[0]>(x) }",
     "attribute 'perm': want each of the 3 axes of 'x' once"},
    // ONNX's parser looped endlessly.
    {"StrayDot",
     "g (float[2,3] a, float[3,4] b) => (float[] y) { y = Einsum<equation=\"i.j,jk->ik\">(a, b) }",
     "want terms of letters"},
    // A vector was allocated with the attribute as its size.
    {"OutputsByTheBillion",
     "g (float[4] x) => (float[] a, float[] b) { a, b = Split<num_outputs=2147483648>(x) }",
     "attribute 'num_outputs' is 2147483648, but the node has 2 outputs"},
    {"LeftOutOutput", "g (float[4] x) => (float[] b) { , b = Split<num_outputs=2>(x) }",
     "outputs: 'outputs', number 0, is missing"},
    {"TransposedChannels",
     "g (float[1,4,5,5] x, float[3,4,3,3] w) => (float[] y) { y = ConvTranspose(x, w) }",
     "input 0 'x' has 4 channels, but weight 'w' takes 3"},
    {"TransposedOutputShape",
     "g (float[1,4,5,5] x, float[4,4,3,3] w) => (float[] y) {"
     "  y = ConvTranspose<output_shape=[0,8]>(x, w) }",
     "attribute 'output_shape': want an extent of at least 1"},
    {"Bias",
     "g (float[1,4,5,5] x, float[4,4,3,3] w, float[3] b) => (float[] y) { y = Conv(x, w, b) }",
     "bias 'b': want one value for each of the 4 filters"},
    // Inference gives a result of one place.
    {"LargeWindow",
     "g (float[1,1,2,8] x, float[1,1,3,3] w) => (float[] y) { y = Conv<strides=[2,2]>(x, w) }",
     "input 0 'x' has size 2 on axis 2, but the window needs 3"},
    {"LargeDilatedWindow",
     "g (float[1,1,5] x, float[1,1,3] w) => (float[] y) {"
     "  y = Conv<dilations=[4], pads=[1,1]>(x, w) }",
     "input 0 'x' has size 7 with padding on axis 2, but the window needs 9"},
    {"TransposedBias",
     "g (float[1,4,5,5] x, float[4,2,3,3] w, float[2] b) => (float[] y) {"
     "  y = ConvTranspose<group=2>(x, w, b) }",
     "bias 'b': want one value for each of the 2 filters in each of 2 groups"},
};

TEST(Infer, WrongModelsNameTheNode) {
  for (const Wrong& wrong : kWrong) {
    SCOPED_TRACE(wrong.name);
    EXPECT_THAT(Inferred(wrong.text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::AllOf(HasSubstr("node /#0"), HasSubstr(wrong.message))));
  }
}

}  // namespace
}  // namespace anemone
