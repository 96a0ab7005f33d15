// Tests that a model gives the logits of its last token, and which products compute one row only.
#include "importer/last_row.h"

#include "absl/strings/str_join.h"
#include "tests/importer/against_ort.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

struct Decoder {
  const char* name;
  const char* text;
  const char* products;  // the sizes of the results of the products after import
};

std::ostream& operator<<(std::ostream& out, const Decoder& decoder) { return out << decoder.name; }

// Weights are those that the text declares. `x` has 4 tokens of 8 numbers.
const Decoder kDecoders[] = {
    {"Product",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,16] w> { logits = MatMul(x, w) }",
     "1x1x16"},
    {"TwoPrompts",
     "(float[3,4,8] x) => (float[3,4,16] logits) <float[8,16] w> { logits = MatMul(x, w) }",
     "3x1x16"},
    {"OneToken",
     "(float[1,1,8] x) => (float[1,1,16] logits) <float[8,16] w> { logits = MatMul(x, w) }",
     "1x1x16"},
    {"TiedEmbedding",
     "(int64[1,4] ids) => (float[1,4,16] logits) <float[16,8] words> { x = Gather(words, ids)"
     "  a = Relu(x) w = Transpose<perm=[1,0]>(words) logits = MatMul(a, w) }",
     "1x1x16"},
    {"GemmOfRows",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[16,8] w, float[16] b>"
     "{ s = Constant<value = int64[2] {-1, 8}>() e = Constant<value = int64[3] {1, -1, 16}>()"
     "  a = Reshape(x, s) g = Gemm<transB=1>(a, w, b) logits = Reshape(g, e) }",
     "1x16"},
    {"FlatBatchIsNotOneRow",
     "(float[2,4,8] x) => (float[2,4,16] logits) <float[16,8] w>"
     "{ s = Constant<value = int64[2] {-1, 8}>() e = Constant<value = int64[3] {2, -1, 16}>()"
     "  a = Reshape(x, s) g = Gemm<transB=1>(a, w) logits = Reshape(g, e) }",
     "8x16"},
    {"Cast",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,16] w>"
     "{ h = Cast<to=10>(x) v = Cast<to=10>(w) m = MatMul(h, v) logits = Cast<to=1>(m) }",
     "1x1x16"},
    {"SoftCap",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,16] w> { c = Constant<value = float "
     "{30}>()"
     "  m = MatMul(x, w) d = Div(m, c) t = Tanh(d) logits = Mul(t, c) }",
     "1x1x16"},
    {"BiasAndClip",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,16] w, float[16] b>"
     "{ l = Constant<value = float {-1}>() h = Constant<value = float {1}>()"
     "  m = MatMul(x, w) d = Add(b, m) logits = Clip(d, l, h) }",
     "1x1x16"},
    {"LogSoftmax",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,16] w>"
     "{ m = MatMul(x, w) logits = LogSoftmax<axis=-1>(m) }",
     "1x1x16"},
    {"LastBlock",
     "(float[1,4,8] x) => (float[1,4,16] logits)"
     "<float[8] g, float[8] b, float[8,32] u, float[32,8] d, float[8,16] w>"
     "{ n = LayerNormalization<axis=-1>(x, g, b) h = MatMul(n, u) a = Relu(h) y = MatMul(a, d)"
     "  s = Add(x, y) f = LayerNormalization<axis=-1>(s, g, b) logits = MatMul(f, w) }",
     "1x1x32 1x1x8 1x1x16"},
    {"NormOfMeanSquares",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8] g, float[8,8] u, float[8,16] w>"
     "{ t = Constant<value = float {2}>() e = Constant<value = float {0.01}>()"
     "  l = Constant<value = int64[1] {-1}>() h = MatMul(x, u) p = Pow(h, t)"
     "  m = ReduceMean(p, l) a = Add(m, e) r = Sqrt(a) n = Div(h, r) k = Mul(g, n)"
     "  logits = MatMul(k, w) }",
     "1x1x8 1x1x16"},
    // Keys and values keep their rows, of 4 tokens; scores and all after them are of one.
    {"Attention",
     "(float[1,4,8] x, float[1,1,4,4] mask) => (float[1,4,16] logits)"
     "<float[8,8] wq, float[8,8] wk, float[8,8] wv, float[8,8] wo, float[8,16] w>"
     "{ s = Constant<value = int64[4] {0, -1, 2, 4}>() f = Constant<value = int64[3] {0, -1, 8}>()"
     "  q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv)"
     "  q4 = Reshape(q, s) k4 = Reshape(k, s) v4 = Reshape(v, s)"
     "  qt = Transpose<perm=[0,2,1,3]>(q4) kt = Transpose<perm=[0,2,3,1]>(k4)"
     "  vt = Transpose<perm=[0,2,1,3]>(v4) sc = MatMul(qt, kt) sm = Add(sc, mask)"
     "  p = Softmax<axis=-1>(sm) o = MatMul(p, vt) ot = Transpose<perm=[0,2,1,3]>(o)"
     "  r = Reshape(ot, f) y = MatMul(r, wo) z = Add(x, y) logits = MatMul(z, w) }",
     "1x1x8 1x4x8 1x4x8 1x2x1x4 1x2x1x4 1x1x8 1x1x16"},
    {"OneProductOfQueriesKeysAndValues",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,24] wqkv, float[8,16] w>"
     "{ n = Constant<value = int64[3] {8, 8, 8}>() a = MatMul(x, wqkv)"
     "  q, k, v = Split<axis=2>(a, n) kt = Transpose<perm=[0,2,1]>(k) sc = MatMul(q, kt)"
     "  p = Softmax<axis=-1>(sc) o = MatMul(p, v) logits = MatMul(o, w) }",
     "1x4x24 1x1x4 1x1x8 1x1x16"},
    {"RotatedQueries",
     "(float[1,4,8] x) => (float[1,4,16] logits)"
     "<float[8,8] wq, float[1,4,8] cos, float[1,4,8] sin, float[8,16] w>"
     "{ n = Constant<value = int64[2] {4, 4}>() q = MatMul(x, wq) a, b = Split<axis=-1>(q, n)"
     "  m = Neg(b) r = Concat<axis=-1>(m, a) c = Mul(q, cos) d = Mul(r, sin) z = Add(c, d)"
     "  logits = MatMul(z, w) }",
     "1x1x8 1x1x16"},
    {"PlacesOfTokens",
     "(int64[1,4] ids) => (float[1,4,16] logits) <float[16,8] words, float[16,8] table,"
     " float[8,16] w> { a = Gather(words, ids) b = Gather(table, ids) c = Add(a, b)"
     "  e = Constant<value = int64[3] {1, 4, 8}>() f = Expand(c, e) logits = MatMul(f, w) }",
     "1x1x16"},
    {"ReadByOthers",
     "(float[1,4,8] x) => (float[1,4,16] logits, float[1,4,8] hidden)"
     "<float[8,8] u, float[8,16] w> { hidden = MatMul(x, u) logits = MatMul(hidden, w) }",
     "1x4x8 1x1x16"},
    {"ReadByNobodyElse",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,8] u, float[8,16] w>"
     "{ h = MatMul(x, u) unread = Relu(h) logits = MatMul(h, w) }",
     "1x1x8 1x1x16"},
    {"TokensMixed",
     "(float[1,4,8] x) => (float[1,4,16] logits) <float[8,8] u, float[8,16] w>"
     "{ h = MatMul(x, u) s = Softmax<axis=1>(h) logits = MatMul(s, w) }",
     "1x4x8 1x1x16"},
    {"TakenByTheModel",
     "(float[1,4,8] x) => (float[1,1,16] logits) <float[8,8] u, float[8,16] w>"
     "{ i = Constant<value = int64[1] {-1}>() h = MatMul(x, u) l = Gather<axis=1>(h, i)"
     "  logits = MatMul(l, w) }",
     "1x1x8 1x1x16"},
    {"TakenByItsNumber",
     "(float[1,4,8] x) => (float[1,1,16] logits) <float[8,8] u, float[8,16] w>"
     "{ i = Constant<value = int64[1] {3}>() j = Constant<value = int64[1] {4}>()"
     "  k = Constant<value = int64[1] {1}>() h = MatMul(x, u) l = Slice(h, i, j, k)"
     "  logits = MatMul(l, w) }",
     "1x1x8 1x1x16"},
    {"AnotherRowTaken",
     "(float[1,4,8] x) => (float[1,1,16] logits) <float[8,8] u, float[8,16] w>"
     "{ i = Constant<value = int64[1] {2}>() h = MatMul(x, u) l = Gather<axis=1>(h, i)"
     "  logits = MatMul(l, w) }",
     "1x4x8 1x1x16"},
    {"OtherNames",
     "(float[1,4,8] x) => (float[1,4,16] scores) <float[8,16] w> { scores = MatMul(x, w) }",
     "1x4x16"},
    {"OtherRank",
     "(float[4,8] x) => (float[4,16] logits) <float[8,16] w> { logits = MatMul(x, w) }", "4x16"},
};

// As the text says, with the last row of `logits` in place of all, if it is batch x tokens x
// vocabulary.
onnx::ModelProto WithLastRow(onnx::ModelProto model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx::ValueInfoProto& logits = *graph.mutable_output(0);
  auto& shape = *logits.mutable_type()->mutable_tensor_type()->mutable_shape();
  if (logits.name() != "logits" || shape.dim_size() != 3) return model;
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (std::string& name : *node.mutable_output()) {
      if (name == "logits") name = "all_logits";
    }
  }
  shape.mutable_dim(1)->set_dim_value(1);
  onnx::NodeProto& slice = *graph.add_node();
  slice.set_op_type("Slice");
  slice.add_input("all_logits");
  slice.add_output("logits");
  for (const int64_t number : {-1, 1000, 1}) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(absl::StrCat("number", number));
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(1);
    tensor.add_int64_data(number);
    slice.add_input(tensor.name());
  }
  return model;
}

onnx::ModelProto ModelWithWeights(const char* text, int opset = 21) {
  onnx::ModelProto model = ModelOfText(text, opset);
  std::mt19937 random(5);
  FillDeclared(*model.mutable_graph(), -1, 1, random);
  return model;
}

std::string ProductsText(const Graph& graph) {
  std::vector<std::string> sizes;
  for (const Node& node : graph.nodes) {
    if (node.op_type != "MatMul" && node.op_type != "Gemm") continue;
    sizes.push_back(absl::StrJoin(graph.values[node.outputs[0]].dims(), "x"));
  }
  return absl::StrJoin(sizes, " ");
}

class LastRow : public testing::TestWithParam<Decoder> {};

TEST_P(LastRow, IsComputedAlone) {
  const onnx::ModelProto model = ModelWithWeights(GetParam().text);
  ImportOptions options = WithEvaluator();
  options.last_logits = true;
  for (const int stop_after : {-1, 0}) {  // with and without the passes
    options.stop_after = stop_after;
    const Model ours = ExpectSameOnOrt(model, WithLastRow(model), options, 1e-3f);
    EXPECT_EQ(GetParam().products, ProductsText(ours.graph));
  }
}

INSTANTIATE_TEST_SUITE_P(Spellings, LastRow, testing::ValuesIn(kDecoders),
                         [](const auto& info) { return info.param.name; });

TEST(LastRow, ValuesKeepTheNamesOfTheFileOnlyIfTheyAreTheSame) {
  const onnx::ModelProto model = ModelWithWeights(kDecoders[0].text);
  ImportOptions options = WithEvaluator();
  options.last_logits = true;
  std::shared_ptr<const Graph> as_read;
  options.as_read = &as_read;
  const auto ours = ImportBytes(model.SerializeAsString(), "", options);
  ASSERT_THAT(ours, IsOk());
  ExpectSameByName(*as_read, ours->graph, {}, 1e-5f);
}

TEST(LastRow, IsNotAskedForByDefault) {
  const auto ours =
      ImportBytes(ModelWithWeights(kDecoders[0].text).SerializeAsString(), "", WithEvaluator());
  ASSERT_THAT(ours, IsOk());
  EXPECT_EQ("1x4x16", ProductsText(ours->graph));
}

TEST(LastRow, OfFreeSizesIsTakenAtTheEnd) {
  const onnx::ModelProto model = ModelWithWeights(
      "(float[1,n,8] x) => (float[1,n,16] logits) <float[8,16] w> { logits = MatMul(x, w) }");
  ImportOptions options = WithEvaluator();
  options.last_logits = true;
  const auto ours = ImportBytes(model.SerializeAsString(), "", options);
  ASSERT_THAT(ours, IsOk());
  const Value& logits = ours->graph.values[ours->graph.outputs[0]];
  ASSERT_TRUE(logits.shape.has_value());
  EXPECT_EQ(1, (*logits.shape)[1].size);
  ExpectSameOnOrt(model, WithLastRow(model), options);
}

TEST(LastRow, OfOldOpsetsIsNotTaken) {
  const onnx::ModelProto model = ModelWithWeights(kDecoders[0].text, 9);
  ImportOptions options = WithEvaluator();
  options.last_logits = true;
  const auto ours = ImportBytes(model.SerializeAsString(), "", options);
  ASSERT_THAT(ours, IsOk());
  EXPECT_EQ("1x4x16", ProductsText(ours->graph));
  ASSERT_EQ(1u, ours->warnings.size());
  EXPECT_EQ("no-logits", ours->warnings[0].rule);
  EXPECT_EQ("export it for a newer opset", ours->warnings[0].remedy);
}

TEST(LastRow, AModelWithoutLogitsIsToldOf) {
  ImportOptions options = WithEvaluator();
  options.last_logits = true;
  for (const char* text : {"(float[1,4,8] x) => (float[1,4,8] y) { y = Relu(x) }",
                           "(float[4,8] x) => (float[4,8] logits) { logits = Relu(x) }"}) {
    const auto ours = ImportBytes(ModelWithWeights(text).SerializeAsString(), "", options);
    ASSERT_THAT(ours, IsOk());
    ASSERT_EQ(1u, ours->warnings.size());
    EXPECT_EQ("no-logits", ours->warnings[0].rule);
  }
}

}  // namespace
}  // namespace anemone
