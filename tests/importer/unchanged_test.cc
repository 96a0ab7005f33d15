// Carried values that no iteration changes (importer/infer/unchanged.h).
#include "importer/infer/unchanged.h"

#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;

const Graph& BodyOf(const Node& node) { return *BodiesOf(node).front(); }

std::vector<std::string> NamesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  names.reserve(ids.size());
  for (ValueId id : ids) names.push_back(graph.values[id].name);
  return names;
}

TEST(Unchanged, AConstantBecomesAConstantOfTheBody) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (int64 m, float[1,2] x) => (float[1,2] y, float[2,2] z) <bool t = {1},"
      "  float[2,2] w = {1, 2, 3, 4}> {"
      "  y, w_out = Loop(m, t, x, w) <body = b (int64 i, bool ci, float[1,2] xi, float[2,2] wi)"
      "    => (bool co, float[1,2] xo, float[2,2] wo) {"
      "    co = Identity(ci) p = MatMul(xi, wi) xo = Tanh(p) v = Identity(wi) wo = Identity(v) }>"
      "  z = Mul(w_out, w) }"));
  EXPECT_EQ(NodesText(model.graph), "Loop m, t, x -> y");
  EXPECT_TRUE(ValueNamed(model.graph, "z").constant.has_value());
  const Graph& body = BodyOf(model.graph.nodes[0]);
  ASSERT_EQ(OpsText(body), "Identity MatMul Tanh");
  EXPECT_TRUE(body.values[body.nodes[1].inputs[1]].constant.has_value());
}

// `a` is captured already; `b` is also a scan output, and the first value of another carried value.
TEST(Unchanged, AValueIsCapturedOnce) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (int64 m, float[2] x, float[2] a, float[2] b) => (float[2] y, float[2] u, float[2] v,"
      "   float[?,2] all) <bool t = {1}> {"
      "  y, u, v, all = Loop(m, t, b, a, b) <body = body (int64 i, bool ci, float[2] xi,"
      "    float[2] ai, float[2] bi) => (bool co, float[2] xo, float[2] ao, float[2] bo, float[2] "
      "bs)"
      "    { co = Identity(ci) p = Add(xi, ai) q = Mul(p, a) r = Sub(q, bi) xo = Add(r, x)"
      "      ao = Identity(ai) bo = Identity(bi)"
      "      bs = Identity(bo) }> }"));
  const Node& loop = model.graph.nodes.back();
  ASSERT_EQ(loop.op_type, "Loop");
  EXPECT_THAT(NamesOf(model.graph, loop.inputs), ElementsAre("m", "t", "b"));
  EXPECT_THAT(NamesOf(model.graph, loop.captures), testing::UnorderedElementsAre("a", "b", "x"));
}

TEST(Unchanged, AStateOfAScan) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (float[2] s, float[2] k, float[300,2] x) => (float[2] f, float[2] l, float[300,2] y) {"
      "  l, f, y = Scan(k, s, x) <num_scan_inputs = 1, body = b (float[2] ki, float[2] si,"
      "    float[2] xi) => (float[2] ko, float[2] so, float[2] yo) {"
      "    a = Add(si, xi) so = Tanh(a) yo = Mul(so, ki) ko = Identity(ki) }> }"));
  ASSERT_EQ(OpsText(model.graph), "Identity Scan");
  EXPECT_THAT(NamesOf(model.graph, model.graph.nodes[1].inputs), ElementsAre("s", "x"));
  EXPECT_THAT(NamesOf(model.graph, model.graph.nodes[1].captures), ElementsAre("k"));
}

TEST(Unchanged, ALoopThatChangesNothingIsDropped) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (int64 m, bool t, float[2] x) => (float[2] y) {"
      "  n = Neg(x)"
      "  o = Loop(m, t, n) <body = b (int64 i, bool ci, float[2] xi) => (bool co, float[2] xo) {"
      "    co = Identity(ci) xo = Identity(xi) }>"
      "  y = Exp(o) }"));
  EXPECT_EQ(OpsText(model.graph), "Neg Exp");
}

// `d` is a scan output without a node of its own: a body may not return what it captures.
TEST(Unchanged, AnInputThatIsAlsoAScanOutputStays) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (int64 m, float[2] c, float[2] d) => (float[2] y, float[2] z, float[?,2] s) <bool t = "
      "{1}> {"
      "  y, z, s = Loop(m, t, c, d) <body = b (int64 i, bool ci, float[2] cc, float[2] dd)"
      "    => (bool co, float[2] cn, float[2] dn, float[2] dd) {"
      "    co = Identity(ci) cn = Add(cc, dd) dn = Identity(dd) }> }"));
  ASSERT_EQ(OpsText(model.graph), "Loop");
  EXPECT_EQ(model.graph.nodes[0].inputs.size(), 4);
}

// Values that change places are state.
TEST(Unchanged, SwappedValuesAreNot) {
  const Model model = ExpectSameOnOrt(
      ParseModel("g (int64 m, float[2] p, float[2] q) => (float[2] y, float[2] z) <bool t = {1}> {"
                 "  y, z = Loop(m, t, p, q) <body = b (int64 i, bool ci, float[2] pi, float[2] qi)"
                 "    => (bool co, float[2] po, float[2] qo) {"
                 "    co = Identity(ci) po = Identity(qi) qo = Identity(pi) }> }"));
  ASSERT_EQ(OpsText(model.graph), "Loop");
  EXPECT_EQ(model.graph.nodes[0].inputs.size(), 4);
}

}  // namespace
}  // namespace anemone
