// Tests that a Graph has the contents of its model: names, types, order, bodies, constants,
// origins.
#include <set>

#include "importer/write/to_onnx.h"
#include "onnx/checker.h"
#include "tests/cpu_seconds.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> OriginIds(const Model& model, const Node& node) {
  std::vector<std::string> ids;
  for (OriginId id : node.origins) ids.push_back(model.origins[id].id);
  return ids;
}

// Collects the names of all values of a graph and its bodies; fails on a duplicate.
void CollectNames(const Graph& graph, std::set<std::string>& names) {
  const std::set<ValueId> captures(graph.captures.begin(), graph.captures.end());
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (captures.contains(id)) continue;
    EXPECT_TRUE(names.insert(graph.values[id].name).second) << graph.values[id].name;
  }
  for (const Node& node : graph.nodes) {
    for (const Attribute::GraphPtr& body : BodiesOf(node)) CollectNames(*body, names);
  }
}

void ExpectUniqueNames(const Model& model) {
  std::set<std::string> names;
  CollectNames(model.graph, names);
}

// Expects that ONNX's checker accepts the output of ToOnnx().
void ExpectWritable(const Model& model) {
  ToOnnxOptions options{.opsets = model.opsets, .external_from = kNeverExternal};
  auto written = ToOnnx(model.graph, options);
  ASSERT_THAT(written, IsOk());
  for (onnx::ValueInfoProto& output : *written->proto.mutable_graph()->mutable_output()) {
    output.mutable_type()->mutable_tensor_type()->mutable_shape();  // the checker requires one
  }
  EXPECT_NO_THROW(onnx::checker::check_model(written->proto));
}

TEST(Reading, NodesValuesAndOrigins) {
  const auto model = Read(ParseModel(R"(
      <ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
      agraph (float[N, 3, ?] x) => (float y) <float[1] w = {2}> {
        [scale] t = Mul(x, w)
        y = Clip(t, , w)
      })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->ir_version, 8);
  EXPECT_EQ(model->opsets.at(""), 13);
  EXPECT_EQ(model->opsets.at("ai.onnx.ml"), 3);
  EXPECT_EQ(NodesText(model->graph), "Mul x, w -> t; Clip t, , w -> y");
  EXPECT_EQ(model->graph.nodes[0].version, 13);
  EXPECT_EQ(NodeLabel(*model, model->graph.nodes[0]), "node 'scale' (Mul, /#0)");
  EXPECT_EQ(NodeLabel(*model, model->graph.nodes[1]), "node /#1 (Clip)");
  const Value& x = ValueNamed(model->graph, "x");
  EXPECT_EQ(x.type, DataType::kFloat);
  ASSERT_THAT(*x.shape, SizeIs(3));
  EXPECT_EQ((*x.shape)[0].symbol, "N");
  EXPECT_EQ((*x.shape)[1].size, 3);
  EXPECT_FALSE((*x.shape)[2].known());
  EXPECT_FALSE(x.is_static());
  EXPECT_EQ(ValueNamed(model->graph, "t").producer, 0);
  EXPECT_EQ(ValueNamed(model->graph, "t").type, DataType::kUndefined);
  EXPECT_EQ(ValueNamed(model->graph, "w").constant->at<float>(0), 2);
  EXPECT_THAT(model->graph.inputs, SizeIs(1));
}

TEST(Reading, NegativeDimensionsAreUnknownOnes) {
  onnx::ModelProto proto = ParseModel("agraph (float[2, 3] x) => (float y) { y = Relu(x) }");
  auto* dims = proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  dims->mutable_shape()->mutable_dim(0)->set_dim_value(-1);
  dims->mutable_shape()->mutable_dim(1)->set_dim_param("a:b?");
  const auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  const Shape& shape = *ValueNamed(model->graph, "x").shape;
  EXPECT_FALSE(shape[0].known());
  EXPECT_EQ(shape[1].symbol, "a:b?");
}

TEST(Reading, NodesOutOfOrderAreSortedAndOthersStay) {
  const auto model = Read(ParseModel(R"(
      agraph (float x) => (float y, float q) {
        y = Add(b, a)
        q = Neg(x)
        b = Relu(a)
        a = Abs(x)
      })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Neg x -> q; Abs x -> a; Relu a -> b; Add b, a -> y");
  EXPECT_THAT(OriginIds(*model, model->graph.nodes[0]), ElementsAre("/#1"));
  EXPECT_EQ(ValueNamed(model->graph, "y").producer, 3);
}

TEST(Reading, DefaultDomainHasTwoNames) {
  onnx::ModelProto proto = ParseModel("agraph (float x) => (float y) { y = Relu(x) }");
  proto.mutable_opset_import(0)->set_domain("ai.onnx");
  proto.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  const auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes[0].domain, "");
  EXPECT_EQ(model->graph.nodes[0].version, 21);
}

TEST(Reading, DomainThatIsNotImportedIsTheNewest) {
  const auto model = Read(ParseModel(R"(
      agraph (float[2, 2] x) => (float y) {
        y = ai.onnx.ml.Normalizer <norm = "MAX"> (x)
      })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes[0].version, 5);
}

TEST(Reading, FilesOfTheFirstDaysNameNoOpset) {
  onnx::ModelProto proto = ParseModel("agraph (float x) => (float y) { y = Neg(x) }");
  proto.set_ir_version(2);
  proto.clear_opset_import();
  const auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes[0].version, 1);
}

TEST(Reading, AnInitializerThatIsAnInputIsAConstantBelowIr4) {
  const auto model = Read(ParseModel(R"(
      <ir_version: 3, opset_import: ["" : 7]>
      agraph (float x, float[2] w) => (float y) <float[2] w = {1, 2}> { y = Add(x, w) })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(model->graph.inputs, SizeIs(1));
  EXPECT_THAT(model->graph.defaults, IsEmpty());
  EXPECT_TRUE(ValueNamed(model->graph, "w").constant.has_value());
}

TEST(Reading, ConstantNodesBecomeConstants) {
  const auto model = Read(ParseModel(R"(
      agraph (float x) => (float y) {
        a = Constant <value = float[1] {3}> ()
        b = Constant <value_float = 4.0> ()
        c = Constant <value_ints = [5, 6]> ()
        d = Constant <value_string = "seven"> ()
        e = Constant <value_floats = [8.0]> ()
        y = Foo.Use (x, a, b, c, d, e)
      })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(model->graph.nodes, SizeIs(1));
  EXPECT_THAT(model->origins, SizeIs(6));
  EXPECT_EQ(ValueNamed(model->graph, "a").constant->at<float>(0), 3);
  EXPECT_EQ(ValueNamed(model->graph, "b").constant->dims(), std::vector<int64_t>{});
  EXPECT_EQ(ValueNamed(model->graph, "c").constant->at<int64_t>(1), 6);
  EXPECT_EQ(ValueNamed(model->graph, "d").constant->strings()[0], "seven");
  EXPECT_EQ(ValueNamed(model->graph, "e").dims(), std::vector<int64_t>{1});
}

TEST(Reading, UnknownOperatorsAreWarnedOfOnce) {
  const auto model = Read(ParseModel(R"(
      agraph (float x) => (float y) { a = my.Op(x)  b = my.Op(a)  y = my.Other(b) })"));
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(model->warnings, SizeIs(2));
  EXPECT_EQ(model->warnings[0].rule, "unknown-operator");
  EXPECT_EQ(model->warnings[0].where, "node /#0 (my.Op)");
  EXPECT_THAT(model->warnings[0].message, HasSubstr("domain 'my'"));
  EXPECT_EQ(model->graph.nodes[0].version, 1);
}

TEST(Reading, DeclaredTypesOfTensorsAndOthers) {
  const auto model = Read(ParseModel(R"(
      agraph (seq(float[N]) s, float x) => (float y) <int64[2] t> {
        t = my.Op(s, x)
        y = my.Op(t)
      })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(ValueNamed(model->graph, "t").type, DataType::kInt64);
  EXPECT_EQ(ValueNamed(model->graph, "t").dims(), std::vector<int64_t>{2});
  const Value& s = ValueNamed(model->graph, "s");
  EXPECT_EQ(s.type, DataType::kUndefined);
  EXPECT_TRUE(TypeOf(s).has_sequence_type());
}

constexpr absl::string_view kIf = R"(
    agraph (bool c, float[2] x) => (float y) <float[2] w = {1, 2}> {
      t = Relu(x)
      y = If (c) <
        then_branch = g () => (float[2] r) { s = Add(t, w)  r = Mul(s, t) },
        else_branch = g () => (float[2] r) { s = Neg(x)  r = Sub(s, t) }
      >
    })";

TEST(Bodies, CaptureWhatTheyUse) {
  const auto model = Read(ParseModel(kIf));
  ASSERT_THAT(model, IsOk());
  const Node& node = model->graph.nodes[1];
  const std::vector<Attribute::GraphPtr> bodies = BodiesOf(node);
  ASSERT_THAT(bodies, SizeIs(2));
  EXPECT_THAT(bodies[0]->captures, SizeIs(2));
  std::vector<std::string> captured;
  for (ValueId id : node.captures) captured.push_back(model->graph.values[id].name);
  EXPECT_THAT(captured, ElementsAre("t", "w", "x", "t"));
  EXPECT_EQ(bodies[0]->values[bodies[0]->captures[0]].name, "t");
  EXPECT_THAT(OriginIds(*model, node),
              ElementsAre("/#1", "/then_branch:If_1/#0", "/then_branch:If_1/#1",
                          "/else_branch:If_1/#0", "/else_branch:If_1/#1"));
  EXPECT_THAT(OriginIds(*model, bodies[1]->nodes[1]), ElementsAre("/else_branch:If_1/#1"));
  EXPECT_THAT(ConsumersOf(model->graph)[node.captures[0]], ElementsAre(1));
  ExpectUniqueNames(*model);
  ExpectWritable(*model);
}

TEST(Bodies, CaptureThroughAnotherBody) {
  const auto model = Read(ParseModel(R"(
      agraph (bool c, float[2] x) => (float y) {
        y = If (c) <
          then_branch = g () => (float[2] r) {
            r = If (c) <then_branch = h () => (float[2] q) { q = Neg(x) },
                        else_branch = h () => (float[2] q) { q = Abs(x) }>
          },
          else_branch = g () => (float[2] r) { r = Relu(x) }
        >
      })"));
  ASSERT_THAT(model, IsOk());
  const Node& outer = model->graph.nodes[0];
  const Graph& then_branch = *BodiesOf(outer)[0];
  EXPECT_THAT(then_branch.captures, SizeIs(2));  // c and x
  EXPECT_THAT(then_branch.nodes[0].captures, SizeIs(2));
  EXPECT_THAT(OriginIds(*model, then_branch.nodes[0]),
              ElementsAre("/then_branch:If_0/#0", "/then_branch:If_0/then_branch:If_0/#0",
                          "/then_branch:If_0/else_branch:If_0/#0"));
  ExpectUniqueNames(*model);
  ExpectWritable(*model);
}

TEST(Bodies, NamesThatShadowOuterOnesAreTheirOwnValues) {
  const auto model = Read(ParseModel(R"(
      agraph (int64 n, bool c, float[2] x) => (float y) {
        t = Neg(x)
        y = Loop (n, c, t) <
          body = g (int64 i, bool k, float[2] x) => (bool k2, float[2] t) {
            k2 = Identity(k)
            t = Relu(x)
          }
        >
      })"));
  ASSERT_THAT(model, IsOk());
  const Graph& body = *BodiesOf(model->graph.nodes[1])[0];
  EXPECT_THAT(body.captures, IsEmpty());
  EXPECT_EQ(body.values[body.nodes[1].inputs[0]].name, "/body:Loop_1/x");
  ExpectUniqueNames(*model);
  ExpectWritable(*model);
}

TEST(Bodies, MayUseValuesThatAreMadeLaterInTheFile) {
  const auto model = Read(ParseModel(R"(
      agraph (bool c, float[2] x) => (float y) {
        y = If (c) <then_branch = g () => (float[2] r) { r = Neg(t) },
                    else_branch = g () => (float[2] r) { r = Abs(t) }>
        t = Relu(x)
      })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->graph.nodes[0].op_type, "Relu");
}

TEST(Reading, TheSizeOfAChainCostsInProportion) {
  const auto seconds_of = [](int nodes) {
    const std::string last = absl::StrCat("v", nodes - 1);
    onnx::ModelProto proto =
        ParseModel(absl::StrCat("agraph (float x) => (float y) { y = Relu(", last, ") }"));
    proto.mutable_graph()->mutable_node()->Reserve(nodes + 1);
    for (int i = 0; i < nodes; ++i) {
      onnx::NodeProto* node = proto.mutable_graph()->add_node();
      node->set_op_type("Relu");
      node->set_name(absl::StrCat("relu_", i));
      node->add_input(i == 0 ? "x" : absl::StrCat("v", i - 1));
      node->add_output(absl::StrCat("v", i));
    }
    const std::string bytes = proto.SerializeAsString();
    return CpuSeconds([&] {
      const auto model = ReadBytes(bytes);
      ASSERT_THAT(model, IsOk());
      EXPECT_THAT(model->graph.nodes, SizeIs(nodes + 1));
      EXPECT_EQ(model->graph.nodes.back().inputs[0], ValueNamed(model->graph, last).producer + 2);
    });
  };
  const double few = seconds_of(10'000);
  EXPECT_LT(seconds_of(100'000), few * kAtMostLinear);
}

}  // namespace
}  // namespace anemone
