// Tests that calls of model-local functions are replaced by the functions' nodes.
#include "importer/edit.h"
#include "importer/read/functions.h"
#include "onnx/defs/schema.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr absl::string_view kHeader = R"(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>)";

onnx::ModelProto WithFunctions(absl::string_view text) {
  return ParseModel(absl::StrCat(kHeader, text));
}

std::vector<std::string> AllOrigins(const Model& model) {
  std::vector<std::string> ids;
  for (const Origin& origin : model.origins) ids.push_back(origin.id);
  return ids;
}

TEST(Functions, EachNodeIsAnOriginOfItsOwn) {
  const auto model = Read(WithFunctions(R"(
      agraph (float x) => (float y) { t = Neg(x)  y = my.Swish(t) }
      <domain: "my", opset_import: ["" : 13]>
      Swish (a) => (b) { s = Sigmoid(a)  b = Mul(a, s) })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Neg x -> t; Sigmoid t -> /Swish_1/s; Mul t, /Swish_1/s -> y");
  EXPECT_THAT(AllOrigins(*model), ElementsAre("/#0", "/Swish_1/#0", "/Swish_1/#1"));
  EXPECT_THAT(model->graph.nodes[2].origins, ElementsAre(2));
  EXPECT_EQ(model->graph.nodes[0].version, 21);
  EXPECT_EQ(model->graph.nodes[1].version, 13);  // the function's import
}

TEST(Functions, CallEachOther) {
  const auto model = Read(WithFunctions(R"(
      agraph (float x) => (float y) { y = my.Outer(x) }
      <domain: "my", opset_import: ["" : 21, "my" : 1]>
      Outer (a) => (b) { t = my.Inner(a)  b = my.Inner(t) }
      <domain: "my", opset_import: ["" : 21]>
      Inner (a) => (b) { b = Neg(a) })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Neg x -> /Outer_0/t; Neg /Outer_0/t -> y");
  EXPECT_THAT(AllOrigins(*model), ElementsAre("/Outer_0/Inner_0/#0", "/Outer_0/Inner_1/#0"));
}

TEST(Functions, AttributesByReferenceByDefaultAndNotAtAll) {
  onnx::ModelProto proto = WithFunctions(R"(
      agraph (float[2, 2] x) => (float y) { a = my.F <alpha = 2.0> (x)  y = my.F(a) }
      <domain: "my", opset_import: ["" : 21]>
      F <alpha, axes> (a) => (b) {
        e = Elu <alpha : float = @alpha> (a)
        b = Transpose <perm : ints = @axes> (e)
      })");
  const auto without = Read(proto);
  ASSERT_THAT(without, IsOk());
  EXPECT_EQ(std::get<float>(without->graph.nodes[0].FindAttribute("alpha")->value), 2);
  EXPECT_EQ(without->graph.nodes[2].FindAttribute("alpha"), nullptr);

  onnx::AttributeProto* axes = proto.mutable_functions(0)->add_attribute_proto();
  axes->set_name("axes");
  axes->set_type(onnx::AttributeProto::INTS);
  axes->add_ints(1);
  axes->add_ints(0);
  const auto with = Read(proto);
  ASSERT_THAT(with, IsOk());
  EXPECT_THAT(std::get<std::vector<int64_t>>(with->graph.nodes[1].FindAttribute("perm")->value),
              ElementsAre(1, 0));
}

TEST(Functions, OptionalInputsAndOutputsLeftOut) {
  const auto model = Read(WithFunctions(R"(
      agraph (float[2] x, float h) => (float y) {
        y = my.Limit(x, , h)
        p, = my.Two(x)
      }
      <domain: "my", opset_import: ["" : 21]>
      Limit (a, low, high) => (b) { b = Clip(a, low, high) }
      <domain: "my", opset_import: ["" : 21]>
      Two (a) => (b, c) { b = Neg(a)  c = Abs(b) })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Clip x, , h -> y; Neg x -> p; Abs p -> /Two_1/c");
}

TEST(Functions, ARequiredInputLeftOutIsAnErrorOfTheInnerNode) {
  EXPECT_THAT(Read(WithFunctions(R"(
      agraph (float x) => (float y) { y = my.F(x) }
      <domain: "my", opset_import: ["" : 21]>
      F (a, b) => (c) { c = Add(b, a) })")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node /F_0/#0 (Add): inputs: 'A', number 0, is missing")));
}

TEST(Functions, OutputsHandedThroughAndGivenTwice) {
  const auto model = Read(WithFunctions(R"(
      agraph (float x) => (float y, float z) { y, z = my.Same(x) }
      <domain: "my", opset_import: ["" : 21]>
      Same (a) => (a, a) { })"));
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(NodesText(model->graph), "Identity x -> y; Identity x -> z");
  EXPECT_THAT(AllOrigins(*model), ElementsAre("/#0", "/#0"));
}

TEST(Functions, InBodiesAndWithBodies) {
  const auto model = Read(WithFunctions(R"(
      agraph (bool c, float x) => (float y) {
        y = If (c) <then_branch = g () => (float r) { r = my.F(c, x) },
                    else_branch = g () => (float r) { r = Neg(x) }>
      }
      <domain: "my", opset_import: ["" : 21]>
      F (k, a) => (b) {
        t = Abs(a)
        b = If (k) <then_branch = g () => (float r) { r = Relu(t) },
                    else_branch = g () => (float r) { r = Neg(a) }>
      })"));
  ASSERT_THAT(model, IsOk());
  const Graph& then_branch = *BodiesOf(model->graph.nodes[0])[0];
  ASSERT_THAT(then_branch.nodes, SizeIs(2));
  EXPECT_EQ(then_branch.nodes[1].op_type, "If");
  const Graph& inner = *BodiesOf(then_branch.nodes[1])[0];
  EXPECT_EQ(inner.values[inner.nodes[0].inputs[0]].name, "/then_branch:If_0/F_0/t");
  EXPECT_THAT(AllOrigins(*model),
              ElementsAre("/#0", "/then_branch:If_0/F_0/#0", "/then_branch:If_0/F_0/#1",
                          "/then_branch:If_0/F_0/then_branch:If_1/#0",
                          "/then_branch:If_0/F_0/else_branch:If_1/#0", "/else_branch:If_0/#0"));
}

TEST(Functions, ABodyMayBeAnArgument) {
  onnx::ModelProto proto = WithFunctions(R"(
      agraph (bool c, float x) => (float y) {
        t = Abs(x)
        y = my.Choose <then = g () => (float r) { r = Relu(t) }> (c, x)
      }
      <domain: "my", opset_import: ["" : 21]>
      Choose <then> (k, a) => (b) {
        b = If <else_branch = g () => (float r) { r = Neg(a) }> (k)
      })");
  onnx::AttributeProto* reference = proto.mutable_functions(0)->mutable_node(0)->add_attribute();
  reference->set_name("then_branch");
  reference->set_type(onnx::AttributeProto::GRAPH);
  reference->set_ref_attr_name("then");
  const auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  const Node& node = model->graph.nodes[1];
  EXPECT_EQ(node.op_type, "If");
  ASSERT_THAT(node.captures, SizeIs(2));
  EXPECT_EQ(model->graph.values[node.captures[0]].name, "x");  // of else_branch, written first
  EXPECT_EQ(model->graph.values[node.captures[1]].name, "t");
}

TEST(Functions, OverloadsAreToldApart) {
  onnx::ModelProto proto = WithFunctions(R"(
      agraph (float x) => (float y) { t = my.F(x)  y = my.F(t) }
      <domain: "my", opset_import: ["" : 21]>
      F (a) => (b) { b = Neg(a) }
      <domain: "my", opset_import: ["" : 21]>
      F (a) => (b) { b = Abs(a) })");
  EXPECT_THAT(Read(proto),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'F' of domain 'my'")));
  proto.mutable_functions(1)->set_overload("two");
  proto.mutable_graph()->mutable_node(1)->set_overload("two");
  EXPECT_EQ(NodesText(Read(proto)->graph), "Neg x -> t; Abs t -> y");
}

// `levels` functions, each of which calls the next one `calls` times; the last contains a Neg.
onnx::ModelProto Tower(int levels, int calls) {
  std::string text = "agraph (float x) => (float y) { y = my.F0(x) }\n";
  for (int level = 0; level < levels; ++level) {
    absl::StrAppend(&text, "<domain: \"my\", opset_import: [\"\" : 21, \"my\" : 1]> F", level,
                    " (v0) => (v", calls, ") {");
    for (int call = 0; call < calls; ++call) {
      absl::StrAppend(&text, "  v", call + 1, " = ",
                      level + 1 < levels ? absl::StrCat("my.F", level + 1) : "Neg", "(v", call,
                      ")");
    }
    absl::StrAppend(&text, "}\n");
  }
  return WithFunctions(text);
}

TEST(Functions, AreLimitedInDepthAndNumber) {
  EXPECT_THAT(Read(Tower(100, 1)), IsOk());
  EXPECT_THAT(Read(Tower(101, 1)), StatusIs(absl::StatusCode::kResourceExhausted,
                                            HasSubstr("nested more than 100 levels")));
  EXPECT_THAT(Read(Tower(5000, 1)), StatusIs(absl::StatusCode::kResourceExhausted,
                                             HasSubstr("nested more than 100 levels")));
  const auto twelve = Read(Tower(12, 2));
  ASSERT_THAT(twelve, IsOk());
  EXPECT_THAT(twelve->graph.nodes, SizeIs(4096));
  EXPECT_THAT(Read(Tower(30, 2)), StatusIs(absl::StatusCode::kResourceExhausted,
                                           HasSubstr("expand to more than 200000 nodes")));
}

// A small file whose paths would fill the memory: a long name that encloses many calls.
TEST(Functions, AreLimitedInTheNamesTheyMake) {
  const std::string name(1 << 20, 'F');
  std::string text = absl::StrCat("g (float x) => (float y) { y = my.", name, "(x) }\n",
                                  "<domain: \"my\", opset_import: [\"\" : 21, \"my\" : 1]> ", name,
                                  " (v0) => (v5000) {");
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&text, " v", i + 1, " = my.Empty(v", i, ")");
  absl::StrAppend(&text, "}\n<domain: \"my\", opset_import: [\"\" : 21]> Empty (a) => (a) { }");
  EXPECT_THAT(Read(WithFunctions(text)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 512.0 MiB")));
}

TEST(Functions, ThatCallThemselvesAreRefused) {
  EXPECT_THAT(Read(WithFunctions(R"(
      agraph (float x) => (float y) { y = my.A(x) }
      <domain: "my", opset_import: ["my" : 1]> A (a) => (b) { b = my.B(a) }
      <domain: "my", opset_import: ["my" : 1]> B (a) => (b) { b = my.C(a) }
      <domain: "my", opset_import: ["my" : 1]> C (a) => (b) { b = my.B(a) })")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("function 'B' calls itself: B -> C -> B")));
}

TEST(Functions, ThatNobodyCallsAreNotLookedAt) {
  EXPECT_THAT(Read(WithFunctions(R"(
      agraph (float x) => (float y) { y = Neg(x) }
      <domain: "my", opset_import: ["my" : 1]> A (a) => (b) { b = my.A(nothing) })")),
              IsOk());
}

TEST(Functions, OfOnnxItselfReplaceANode) {
  auto model = Read(ParseModel(R"(
      agraph (float[1, 2, 3, 4] x) => (float y) {
        y = MeanVarianceNormalization <axes = [0, 2]> (x)
      })"));
  ASSERT_THAT(model, IsOk());
  Graph& graph = model->graph;
  const Node call = graph.nodes[0];
  const onnx::FunctionProto* function =
      onnx::OpSchemaRegistry::Schema("MeanVarianceNormalization", 21)->GetFunction();
  NameScope names(graph);
  const auto nodes = ExpandFunction(*model, graph, names, call, *function);
  ASSERT_THAT(nodes, IsOk());
  ASSERT_GT(nodes->size(), 5);
  EXPECT_EQ(nodes->back().outputs[0], call.outputs[0]);
  for (const Node& node : *nodes) {
    EXPECT_EQ(node.origins, call.origins);
    EXPECT_NE(node.op_type, "Constant");
  }
  EXPECT_THAT(model->origins, SizeIs(1));
  graph.nodes = *nodes;
  SetProducers(graph);
  EXPECT_THAT(NodesText(graph), HasSubstr("-> /#0/MeanVarianceNormalization/"));
}

}  // namespace
}  // namespace anemone
