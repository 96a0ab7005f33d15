#include "importer/infer/fold.h"

#include "base/model_limits.h"
#include "importer/elements.h"
#include "importer/infer/fold_rules.h"
#include "importer/opset/opset.h"
#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Counts the calls of ONNX Runtime.
struct CountingEvaluator {
  int calls = 0;
  int nodes = 0;
  Evaluator get() {
    return [this, evaluate = MakeEvaluator(TestRuntime())](const Graph& graph,
                                                           const std::vector<ValueId>& wanted) {
      ++calls;
      nodes += static_cast<int>(graph.nodes.size());
      return evaluate(graph, wanted);
    };
  }
};

absl::StatusOr<Model> Folded(const onnx::ModelProto& proto, const Evaluator& evaluate) {
  auto model = Read(proto);
  if (!model.ok()) return model;
  const absl::Status status = InferAndFold(*model, evaluate);
  if (!status.ok()) return status;
  return model;
}

absl::StatusOr<Model> Folded(absl::string_view text, const Evaluator& evaluate = nullptr) {
  return Folded(ParseModel(text), evaluate);
}

TEST(Fold, ShapePlumbingNeedsNoEvaluator) {
  const auto model = Folded(
      "g (float[2,3,8,8] x) => (float[] y) {"
      "  shape = Shape(x) i = Constant<value = int64 {0}>() batch = Gather(shape, i)"
      "  axes = Constant<value = int64[1] {0}>() b = Unsqueeze(batch, axes)"
      "  rest = Constant<value = int64[1] {-1}>() s = Concat<axis=0>(b, rest)"
      "  y = Reshape(x, s) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Reshape x, s -> y");
  EXPECT_THAT(ValueNamed(model->graph, "s").constant->data<int64_t>(), ElementsAre(2, -1));
  EXPECT_EQ(ValueNamed(model->graph, "y").dims(), (std::vector<int64_t>{2, 192}));
}

TEST(Fold, AnUnknownBatchStaysInThePlumbing) {
  const auto model = Folded(
      "g (float[N,3] x) => (int64[] y) { shape = Shape(x) i = Constant<value = int64[1] {1}>()"
      "  known = Gather(shape, i) j = Constant<value = int64[1] {0}>()"
      "  open = Gather(shape, j) y = Add(known, open) }");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph),
            "Shape x -> shape; Gather shape, j -> open; Add known, open -> y");
}

// ONNX Runtime 1.31.1 crashes on it.
TEST(Fold, PlanesWithoutElementsAreNotEvaluated) {
  CountingEvaluator evaluator;
  const auto model = Folded(
      "g (float[1] s) => (float[1,1,0,1,1] y) <float[1,1,0,1,1] x = {}, float[1] b = {1.0}> {"
      "  y = InstanceNormalization(x, b, b) }",
      evaluator.get());
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(evaluator.calls, 0);
  EXPECT_EQ(NodesText(model->graph), "InstanceNormalization x, b, b -> y");
}

// ONNX Runtime 1.31 ends the process on the products and recurrences, and returns memory that it
// did not write as the product with a vector.
TEST(Fold, WhatHasNoElementsIsNotLeftToTheRuntime) {
  struct Case {
    const char* text;
    std::vector<int64_t> dims;
  };
  const Case cases[] = {
      {"g (float[0,2,4] x) => (float[] y) { y = Einsum<equation = \"bqd,bkd->bqk\">(x, x) }",
       {0, 2, 2}},
      {"g (float[4,2,0] x) => (float[] y) { y = Einsum<equation = \"bqd,bkd->bqk\">(x, x) }",
       {4, 2, 2}},
      {"g (float[2,3,0] x, float[0] v) => (float[] y) { y = MatMul(x, v) }", {2, 3}},
      {"g (float[2,0,4] x, float[1,9,4] w, float[1,9,3] r) => (float[] y) {"
       "  y, h = GRU<hidden_size = 3>(x, w, r) }",
       {2, 1, 0, 3}},
      {"g (float[2,0,4] x, float[2,12,4] w, float[2,12,3] r) => (float[] y) {"
       "  , y = LSTM<hidden_size = 3, direction = \"bidirectional\">(x, w, r) }",
       {2, 0, 3}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto model = Folded(c.text);
    ASSERT_THAT(model, IsOk());
    EXPECT_EQ(NodesText(model->graph), "");
    const std::optional<Tensor>& y = ValueNamed(model->graph, "y").constant;
    ASSERT_TRUE(y.has_value());
    EXPECT_EQ(y->dims(), c.dims);
    for (int64_t i = 0; i < y->elements(); ++i) EXPECT_EQ(ElementAsDouble(*y, i), 0);
  }
  const auto steps = Folded(  // its last state has elements
      "g (float[0,2,4] x, float[1,9,4] w, float[1,9,3] r) => (float[] h) {"
      "  y, h = GRU<hidden_size = 3>(x, w, r) }");
  ASSERT_THAT(steps, IsOk());
  EXPECT_EQ(steps->graph.nodes.size(), 1);
}

TEST(Fold, ConstantsAreEvaluatedTogether) {
  CountingEvaluator counting;
  const auto model = Folded(
      "g (float[2] x) => (float[2] y) { a = Constant<value = float[2] {1, 2}>()"
      "  b = Tanh(a) c = Mul(b, a) d = Atan(c) e = Add(x, d) f = Sinh(a) y = Add(e, f) }",
      counting.get());
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Add x, d -> e; Add e, f -> y");
  EXPECT_EQ(counting.calls, 1);
  EXPECT_EQ(counting.nodes, 4);
  EXPECT_FALSE(ValueNamed(model->graph, "b").constant.has_value());  // not needed
}

TEST(Fold, AShapeThatHangsOnAConstantIsWaitedFor) {
  CountingEvaluator counting;
  const auto model = Folded(
      "g (float[12] x) => (float[] y) { a = Constant<value = float[2] {1.5, 2.5}>()"
      "  b = Mul(a, a) c = Cast<to=7>(b) y = Reshape(x, c) }",
      counting.get());
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(ValueNamed(model->graph, "y").dims(), (std::vector<int64_t>{2, 6}));
}

TEST(Fold, FillsStayOneValue) {
  const auto model = Folded(
      "g (float[64,64] x) => (float[] y) { s = Constant<value = int64[2] {64, 64}>()"
      "  a = ConstantOfShape<value = float[1] {0.5}>(s) b = Transpose<perm=[1,0]>(a)"
      "  one = Constant<value = float {1}>() c = Expand(one, s) d = Add(x, b) y = Add(d, c) }",
      WithEvaluator().evaluate);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Add x, b -> d; Add d, c -> y");
  const Tensor& b = *ValueNamed(model->graph, "b").constant;
  EXPECT_TRUE(b.is_fill());
  EXPECT_EQ(b.at<float>(77), 0.5f);
  EXPECT_EQ(b.elements(), 4096);
  EXPECT_TRUE(ValueNamed(model->graph, "c").constant->is_fill());
}

TEST(Fold, AViewOfAWeightReadsNothing) {
  onnx::ModelProto proto = ParseModel(
      "g (float[2] x) => (float[] y) { s = Constant<value = int64[2] {64, 64}>()"
      "  b = Reshape(w, s) t = Identity(b) y = MatMul(x, t) }");
  proto.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_value(64);
  AddInitializer<float>(proto, "w", onnx::TensorProto::FLOAT, {4096},
                        std::vector<float>(4096, 0.25f));
  const auto model = Folded(proto, nullptr);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "MatMul x, t -> y");
  EXPECT_EQ(ValueNamed(model->graph, "t").constant->bytes().data(),
            ValueNamed(model->graph, "w").constant->bytes().data());
}

TEST(Fold, AKnownConditionTakesItsBranch) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (float[1,3] x) => (float[N,M] y) { shape = Shape(x) i = Constant<value = int64 {0}>()"
      "  n = Gather(shape, i) one = Constant<value = int64 {1}>() c = Equal(n, one)"
      "  y = If(c) <then_branch = t () => (float[N,M] a) { h = Relu(x) a = Neg(h) },"
      "             else_branch = e () => (float[N,M] b) { b = Exp(x) }> }"));
  ASSERT_EQ(model.graph.nodes.size(), 2);
  EXPECT_EQ(model.graph.nodes[0].op_type, "Relu");
  EXPECT_EQ(model.origins[model.graph.nodes[0].origins[0]].id, "/then_branch:If_5/#0");
  EXPECT_EQ(model.graph.values[model.graph.outputs[0]].name, "y");
}

TEST(Fold, OfAConstantThatGetsTheTypeOfAnInput) {
  const Model model = ExpectSameOnOrt(
      ParseModel("g (float[2] x) => (float[2] y) { two = Constant<value = int32 {2}>()"
                 "  c = CastLike(two, x) y = Mul(x, c) }"));
  EXPECT_EQ(NodesText(model.graph), "Mul x, c -> y");
}

TEST(Fold, BodiesAreFolded) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (bool c, float[1,3] x) => (float[N,M] y) { two = Constant<value = float {2}>()"
      "  y = If(c) <then_branch = t () => (float[N,M] a) { h = Tanh(two) a = Mul(x, h) },"
      "             else_branch = e () => (float[N,M] b) { b = Mul(x, two) }> }"));
  ASSERT_EQ(model.graph.nodes.size(), 1);
  EXPECT_EQ(BodiesOf(model.graph.nodes[0])[0]->nodes.size(), 1);
}

TEST(Fold, AnInputWithADefaultIsNotFolded) {
  onnx::ModelProto proto =
      ParseModel("g (float[2] x, float[2] w) => (float[2] y) { v = Exp(w) y = Add(x, v) }");
  AddInitializer<float>(proto, "w", onnx::TensorProto::FLOAT, {2}, {1, 2});
  ImportOptions options = WithEvaluator();
  const auto folded = ImportBytes(proto.SerializeAsString(), "", options);
  ASSERT_THAT(folded, IsOk());
  EXPECT_EQ(NodesText(folded->graph), "Add x, v -> y");
  options.overridable = {"w"};
  const auto kept = ImportBytes(proto.SerializeAsString(), "", options);
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(NodesText(kept->graph), "Exp w -> v; Add x, v -> y");
}

struct Kept {
  const char* name;
  const char* text;
};

const Kept kKept[] = {
    {"random", "g () => (float[] y) { y = RandomNormal<shape=[2,3]>() }"},
    {"random like",
     "g () => (float[] y) { a = Constant<value = float[2] {1, 2}>() y = RandomUniformLike(a) }"},
    {"too large",
     "g () => (float[] y) { a = Constant<value = float[2] {1, 2}>()"
     "  r = Constant<value = int64[1] {5000000}>() y = Tile(a, r) }"},
    {"endless",
     "g () => (float[] y) { m = Constant<value = int64 {9223372036854775807}>()"
     "  t = Constant<value = bool {1}>() x = Constant<value = float {0}>()"
     "  y = Loop(m, t, x) <body = b (int64 i, bool ci, float xi) => (bool co, float xo) {"
     "    co = Identity(ci) xo = Exp(xi) }> }"},
    {"might trap",
     "g () => (int64[] y) { a = Constant<value = int64[1] {1}>()"
     "  z = Constant<value = int64[1] {-1}>() y = Mod(a, z) }"},
};

TEST(Fold, SomeConstantsAreNot) {
  for (const Kept& kept : kKept) {
    SCOPED_TRACE(kept.name);
    CountingEvaluator counting;
    const auto model = Folded(kept.text, counting.get());
    ASSERT_THAT(model, IsOk());
    EXPECT_EQ(counting.calls, 0);
    EXPECT_EQ(model->graph.nodes.size(), 1);
  }
}

TEST(Fold, AByteThatIsNeither0Nor1IsTrue) {
  onnx::ModelProto proto = ParseModel(
      "g (float[2] x) => (float[2] y) <bool t = {1}> {"
      "  y = If(t) <then_branch = a () => (float[2] p) { p = Neg(x) },"
      "             else_branch = b () => (float[2] q) { q = Exp(x) }> }");
  onnx::TensorProto& condition = *proto.mutable_graph()->mutable_initializer(0);
  condition.clear_int32_data();
  condition.set_raw_data("i");
  const auto model = Folded(proto, nullptr);
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(NodesText(model->graph), HasSubstr("Neg x"));
  EXPECT_THAT(NodesText(model->graph), Not(HasSubstr("Exp")));
}

TEST(Fold, ADivisionThatTrapsIsRefused) {
  for (const char* division :
       {"g () => (int64[] y) { a = Constant<value = int64[2] {1, 2}>()"
        "  z = Constant<value = int64[2] {1, 0}>() y = Div(a, z) }",
        "g () => (int32[] y) { a = Constant<value = int32[1] {-2147483648}>()"
        "  z = Constant<value = int32[1] {-1}>() y = Mod(a, z) }"}) {
    const auto model = Folded(division, WithEvaluator().evaluate);
    EXPECT_THAT(model, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("by zero")));
  }
}

TEST(Fold, ARefusedNodeStaysAndTheOthersAreFolded) {
  const auto model = Folded(
      "g (float[2] x) => (float[] y, float[] z) { a = Constant<value = float[2] {1, 2}>()"
      "  i = Constant<value = int64[1] {7}>() b = Gather(a, i) c = Neg(b) d = Tanh(a)"
      "  y = Add(x, c) z = Add(x, d) }",
      WithEvaluator().evaluate);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Gather a, i -> b; Neg b -> c; Add x, c -> y; Add x, d -> z");
  ASSERT_EQ(model->warnings.size(), 2);
  EXPECT_EQ(model->warnings[0].rule, "not-folded");
  EXPECT_EQ(model->warnings[0].where, "/#2");
}

TEST(Fold, WhatALimitKeepsIsWarnedOfOnce) {
  const ModelLimits limits({{"folded-bytes", 64}, {"unrolled-nodes", 8}});
  // The body is walked several times.
  const auto model = Folded(
      "g (float[1,64] x) => (float[1,64] y) { r = Constant<value_ints = [1, 16]>()"
      "  s = Constant<value = float[1,4] {1, 2, 3, 4}>() n = Constant<value_int = 8>()"
      "  y = Loop(n, , x) <body = b (int64 i, bool k, float[1,64] v) => (bool o, float[1,64] w)"
      "  { o = Identity(k) t = Tile(s, r) w = Add(v, t) }> }",
      WithEvaluator().evaluate);
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->warnings.size(), 2);
  EXPECT_EQ(model->warnings[0].rule, "not-folded");
  EXPECT_EQ(model->warnings[0].where, "/body:Loop_3/#1");
  EXPECT_EQ(model->warnings[0].remedy, "--limit folded-bytes=N raises the limit");
  EXPECT_EQ(model->warnings[1].rule, "not-unrolled");
  EXPECT_EQ(model->warnings[1].where, "/#3");
  EXPECT_EQ(model->warnings[1].remedy, "--limit unrolled-nodes=N raises the limit");
}

TEST(Fold, DataDependentShapesAreKnownAfterwards) {
  const auto model = Folded(
      "g (float[2] x) => (float[] y) { a = Constant<value = float[4] {0, 1, 0, 2}>()"
      "  b = NonZero(a) c = Transpose(b) d = Cast<to=1>(c) y = Add(x, d) }",
      WithEvaluator().evaluate);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Add x, d -> y");
  EXPECT_EQ(ValueNamed(model->graph, "y").dims(), (std::vector<int64_t>{2, 2}));
}

TEST(Fold, ASizeThatCannotBeCountedIsAnError) {
  EXPECT_THAT(Folded("g () => (float[] y) {"
                     "  s = Constant<value = int64[2] {4611686018427387904, 4611686018427387904}>()"
                     "  y = ConstantOfShape(s) }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("node /#1 (ConstantOfShape)"), HasSubstr("'y'"))));
}

TEST(Fold, AContradictoryBranchIsLeftAsItIs) {
  // Silero VAD has two branches for two sample rates, which require inputs of different lengths.
  // Folding the branch that does not match the bound length made ONNX Runtime refuse the model.
  const auto model = Folded(
      "g (bool c, float[2,3] x) => (float[] y) {"
      "  y = If(c) <then_branch = t () => (float[] a) { a = Relu(x) },"
      "             else_branch = e () => (float[] b) {"
      "               two = Constant<value = float[1] {2}>() h = Tanh(two) m = MatMul(x, x)"
      "               b = Mul(m, h) }> }",
      WithEvaluator().evaluate);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(BodiesOf(model->graph.nodes[0])[1]->nodes.size(), 3);
  ASSERT_EQ(model->warnings.size(), 1);
  EXPECT_EQ(model->warnings[0].rule, "unreachable-branch");
}

TEST(Fold, ConstantRangesMayComeAsVectors) {
  const Model model = ExpectSameOnOrt(
      ParseModel("g (int64[3] x) => (int64[3] y) { a = Constant<value = int64 {0}>()"
                 "  s = Constant<value = int64[2] {3, 5}>() l, m = Split<num_outputs=2>(s)"
                 "  d = Constant<value = int64 {1}>() r = Range(a, l, d) y = Add(x, r) }"));
  EXPECT_EQ(model.graph.nodes.size(), 1);
}

}  // namespace
}  // namespace anemone
