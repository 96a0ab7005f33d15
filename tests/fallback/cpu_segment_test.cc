// Nodes of a Graph run as a session: values without copies, bodies, sequences, errors with names.
#include "fallback/cpu_segment.h"

#include <array>

#include "importer/opset/opsets.h"
#include "onnx/onnx_pb.h"
#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string SequenceOfFloats() {
  onnx::TypeProto type;
  type.mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  return type.SerializeAsString();
}

// y = Relu(x) + 1
struct ReluAdd {
  explicit ReluAdd(std::vector<int64_t> dims = {3}) {
    x = b.Floats("x", dims);
    const ValueId positive = b.Floats("positive", dims);
    y = b.Floats("y", dims);
    b.Add("Relu", {x}, {positive});
    b.Add("Add", {positive, b.Constant("one", Tensor::Floats({1}, {1}))}, {y});
  }
  absl::StatusOr<std::unique_ptr<CpuSegment>> Create() const {
    return CpuSegment::Create(Runtime(), b.graph, {0, 1}, {x}, {y}, {});
  }
  GraphBuilder b;
  ValueId x;
  ValueId y;
};

TEST(CpuSegment, RunsAChain) {
  const auto segment = ReluAdd().Create();
  ASSERT_TRUE(segment.ok()) << segment.status();
  const auto out = (*segment)->Run({ToValue(Runtime(), Tensor::Floats({3}, {-1, 0, 2}))}, {{}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(ToFloats((*out)[0]), ElementsAre(1, 1, 3));
}

TEST(CpuSegment, ResultsOutliveTheSegment) {
  CpuValue y;
  {
    const auto segment = ReluAdd().Create();
    y = (*(*segment)->Run({ToValue(Runtime(), Tensor::Floats({3}, {1, 2, 3}))}, {{}}))[0];
  }
  EXPECT_THAT(ToFloats(y), ElementsAre(2, 3, 4));
}

TEST(CpuSegment, WritesIntoTheCallersMemory) {
  const auto segment = ReluAdd().Create();
  std::array<float, 3> memory{};
  const CpuOutput place{
      absl::MakeSpan(reinterpret_cast<std::byte*>(memory.data()), 12), DataType::kFloat, {3}};
  const auto out = (*segment)->Run({ToValue(Runtime(), Tensor::Floats({3}, {-1, 0, 2}))}, {place});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(memory, ElementsAre(1, 1, 3));
  EXPECT_EQ(static_cast<const void*>((*out)[0].ToTensor()->bytes().data()), memory.data());
}

// Models in which no node writes the output.
TEST(CpuSegment, WritesConstantsInputsAndViewsIntoTheCallersMemory) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {2});
  const ValueId same = b.Floats("same", {2});
  const ValueId column = b.Floats("column", {2, 1});
  const ValueId constant = b.Constant("constant", Tensor::Floats({2}, {7, 8}));
  b.Add("Identity", {x}, {same});
  b.Add("Unsqueeze", {x, b.Constant("axis", Tensor::Int64s({1}, {1}))}, {column});
  const auto segment =
      CpuSegment::Create(Runtime(), b.graph, {0, 1}, {x}, {same, column, constant, x}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  std::array<std::array<float, 2>, 4> memory{};
  std::vector<CpuOutput> places;
  places.reserve(memory.size());
  for (auto& part : memory) {
    places.push_back(
        {absl::MakeSpan(reinterpret_cast<std::byte*>(part.data()), 8), DataType::kFloat, {2}});
  }
  places[1].dims = {2, 1};
  const auto out = (*segment)->Run({ToValue(Runtime(), Tensor::Floats({2}, {1, 2}))}, places);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(memory[0], ElementsAre(1, 2));
  EXPECT_THAT(memory[1], ElementsAre(1, 2));
  EXPECT_THAT(memory[2], ElementsAre(7, 8));
  EXPECT_THAT(memory[3], ElementsAre(1, 2));
}

// The output must not refer to bytes that only the input keeps alive.
TEST(CpuSegment, AnOutputThatIsAnInputIsThatValue) {
  const ReluAdd chain;
  const auto segment =
      CpuSegment::Create(Runtime(), chain.b.graph, {0, 1}, {chain.x}, {chain.y, chain.x}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  CpuValue passed;
  {
    const CpuValue x = ToValue(Runtime(), Tensor::Floats({3}, {1, 2, 3}));
    const auto out = (*segment)->Run({x}, {{}, {}});
    ASSERT_TRUE(out.ok()) << out.status();
    passed = (*out)[1];
  }
  EXPECT_THAT(ToFloats(passed), ElementsAre(1, 2, 3));
}

TEST(CpuSegment, MemoryOfAnotherShapeOrTypeIsRefused) {
  const auto segment = ReluAdd({-1}).Create();
  const CpuValue x = ToValue(Runtime(), Tensor::Floats({3}, {1, 2, 3}));
  alignas(8) std::array<std::byte, 64> memory{};
  for (const CpuOutput& place : {CpuOutput{absl::MakeSpan(memory), DataType::kFloat, {16}},
                                 CpuOutput{absl::MakeSpan(memory), DataType::kDouble, {8}}}) {
    // The code depends on the version of ONNX Runtime.
    const absl::Status status = (*segment)->Run({x}, {place}).status();
    EXPECT_THAT(status,
                AnyOf(StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Relu_0")),
                      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Relu_0"))));
  }
  const ReluAdd chain({-1});
  const auto through =
      CpuSegment::Create(Runtime(), chain.b.graph, {0, 1}, {chain.x}, {chain.y, chain.x}, {});
  EXPECT_THAT(
      (*through)->Run({x}, {{}, {absl::MakeSpan(memory), DataType::kFloat, {16}}}),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr(
              "node 'Relu_0' (Relu), output 'x': want memory for float32 3, found float32 16")));
}

TEST(CpuSegment, WrongInputsAreNamed) {
  const auto segment = ReluAdd().Create();
  const auto status = [&](std::vector<CpuValue> in) { return (*segment)->Run(in, {{}}).status(); };
  EXPECT_THAT(status({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("want 1 inputs and 1 outputs")));
  EXPECT_THAT(
      status({CpuValue()}),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          HasSubstr("CPU segment at node 'Relu_0' (Relu), input 'x': want a value, found none")));
  EXPECT_THAT(
      status({ToValue(Runtime(), Tensor::Int64s({3}, {1, 2, 3}))}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Unexpected input data type")));
  EXPECT_THAT(status({ToValue(Runtime(), Tensor::Floats({2}, {1, 2}))}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("CPU segment at node 'Relu_0' (Relu)")));
}

TEST(CpuSegment, AnInputThatANodeLeavesOutIsNoInput) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {3});
  const ValueId y = b.Floats("y", {3});
  b.Add("Clip", {x, kNone, b.Constant("high", Tensor::Floats({}, {1}))}, {y});
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  const auto out = (*segment)->Run({ToValue(Runtime(), Tensor::Floats({3}, {-5, 0, 5}))}, {{}});
  EXPECT_THAT(ToFloats((*out)[0]), ElementsAre(-5, 0, 1));
}

TEST(CpuSegment, ATypeThatOnnxRuntimeDoesNotKnowIsNamed) {
  GraphBuilder b;
  const ValueId y = b.Tensor("y", DataType::kComplex64, {512});
  b.Add("Identity", {b.Constant("c", Tensor::Zeros(DataType::kComplex64, {512}))}, {y});
  EXPECT_THAT(CpuSegment::Create(Runtime(), b.graph, {0}, {}, {y}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("complex64")));
}

TEST(CpuSegment, Strings) {
  GraphBuilder b;
  const ValueId x = b.Tensor("x", DataType::kString, {2});
  const ValueId y = b.Tensor("y", DataType::kString, {2});
  b.Add("StringConcat", {x, b.Constant("end", Tensor::Strings({1}, {"!"}))}, {y});
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  const auto out = (*segment)->Run({ToValue(Runtime(), Tensor::Strings({2}, {"a", ""}))}, {{}});
  EXPECT_THAT((*out)[0].ToTensor()->strings(), ElementsAre("a!", "!"));
}

TEST(CpuSegment, ASequencePassesFromOneSegmentToTheNext) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {4});
  const ValueId parts = b.Untyped("parts");
  b.graph.values[parts].other_type = SequenceOfFloats();
  const ValueId y = b.Floats("y", {2});
  b.Add("SplitToSequence", {x, b.Constant("two", Tensor::Int64s({}, {2}))}, {parts});
  b.Add("SequenceAt", {parts, b.Constant("last", Tensor::Int64s({}, {-1}))}, {y});
  const auto first = CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {parts}, {});
  const auto second = CpuSegment::Create(Runtime(), b.graph, {1}, {parts}, {y}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*first)->session().outputs()[0].kind, CpuValue::Kind::kSequence);
  const auto split = (*first)->Run({ToValue(Runtime(), Tensor::Floats({4}, {1, 2, 3, 4}))}, {{}});
  EXPECT_EQ((*split)[0].kind(), CpuValue::Kind::kSequence);
  EXPECT_EQ((*split)[0].Elements()->size(), 2);
  const auto out = (*second)->Run(*split, {{}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(ToFloats((*out)[0]), ElementsAre(3, 4));
}

// ONNX Runtime can return an empty optional, but crashes if it gets one as an input.
TEST(CpuSegment, AnEmptyOptionalIsNothingAndIsMadeInside) {
  onnx::TypeProto type;
  type.mutable_optional_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::FLOAT);
  GraphBuilder b;
  const ValueId none = b.Untyped("none");
  b.graph.values[none].other_type = type.SerializeAsString();
  const ValueId has = b.Tensor("has", DataType::kBool, {});
  onnx::AttributeProto attribute;
  attribute.set_name("type");
  attribute.set_type(onnx::AttributeProto::TYPE_PROTO);
  *attribute.mutable_tp() = type.optional_type().elem_type();
  b.Add("Optional", {}, {none}, {{"type", Attribute::Other{attribute.SerializeAsString()}}});
  b.Add("OptionalHasElement", {none}, {has});
  const auto first = CpuSegment::Create(Runtime(), b.graph, {0}, {}, {none}, {});
  const auto second = CpuSegment::Create(Runtime(), b.graph, {1}, {none}, {has}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  const auto made = (*first)->Run({}, {{}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)[0].kind(), CpuValue::Kind::kNothing);
  const auto has_element = [&](const CpuValue& value) {
    const auto told = (*second)->Run({value}, {{}});
    EXPECT_TRUE(told.ok()) << told.status();
    return told.ok() && (*told)[0].ToTensor()->at<bool>(0);
  };
  EXPECT_FALSE(has_element((*made)[0]));
  EXPECT_FALSE(has_element(CpuValue()));
  EXPECT_TRUE(has_element(ToValue(Runtime(), Tensor::Floats({1}, {1}))));
  EXPECT_FALSE(has_element((*made)[0]));
}

TEST(CpuSegment, ATensorCannotBeLeftOut) {
  const auto segment = ReluAdd().Create();
  EXPECT_THAT((*segment)->Run({CpuValue()}, {{}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 'x': want a value, found none")));
}

TEST(CpuSegment, AnEmptySequencePasses) {
  GraphBuilder b;
  const ValueId none = b.Untyped("none");
  b.graph.values[none].other_type = SequenceOfFloats();
  const ValueId length = b.Tensor("length", DataType::kInt64, {});
  b.Add("SequenceEmpty", {}, {none});
  b.Add("SequenceLength", {none}, {length});
  const auto first = CpuSegment::Create(Runtime(), b.graph, {0}, {}, {none}, {});
  const auto second = CpuSegment::Create(Runtime(), b.graph, {1}, {none}, {length}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  const auto made = (*first)->Run({}, {{}});
  EXPECT_TRUE((*made)[0].Elements()->empty());
  const auto out = (*second)->Run(*made, {{}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].ToTensor()->at<int64_t>(0), 0);
}

// A body that returns its captured value times ones (large, so external), or minus one.
Attribute Branch(const std::string& name, bool then) {
  GraphBuilder b;
  const ValueId outer = b.Capture(b.Floats("outer_" + name, {512}));
  const ValueId y = b.Floats(name + "_y", {512});
  Tensor ones = Tensor::Zeros(DataType::kFloat, {512});
  for (int i = 0; i < 512; ++i) ones.mutable_data<float>()[i] = 1;
  b.Add(then ? "Mul" : "Sub", {outer, b.Constant(name + "_ones", ones)}, {y});
  b.graph.outputs = {y};
  return {name, std::make_shared<const Graph>(std::move(b.graph))};
}

TEST(CpuSegment, AnIfWhoseBodiesCapture) {
  GraphBuilder b;
  const ValueId condition = b.Tensor("condition", DataType::kBool, {});
  const ValueId x = b.Floats("x", {512});
  const ValueId y = b.Floats("y", {512});
  b.Add("If", {condition}, {y}, {Branch("then_branch", true), Branch("else_branch", false)});
  b.graph.nodes[0].captures = {x, x};
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {condition, x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
  Tensor five = Tensor::Zeros(DataType::kFloat, {512});
  five.mutable_data<float>()[511] = 5;
  for (const bool is_true : {true, false}) {
    const Tensor choice = Tensor::Of<bool>(DataType::kBool, {}, {is_true});
    std::array<float, 512> memory{};
    const CpuOutput place{
        absl::MakeSpan(reinterpret_cast<std::byte*>(memory.data()), 2048), DataType::kFloat, {512}};
    const auto out =
        (*segment)->Run({ToValue(Runtime(), choice), ToValue(Runtime(), five)}, {place});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(memory[511], is_true ? 5 : 4);
  }
}

TEST(CpuSegment, AnUnknownOperatorIsNamed) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {1});
  const ValueId y = b.Floats("y", {1});
  Node& node = b.graph.nodes[b.Add("Frobnicate", {x}, {y})];
  node.domain = "com.acme";
  node.version = 1;
  const auto create = [&](const std::string& label) {
    return CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, {.label = label}).status();
  };
  EXPECT_THAT(
      create(""),
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          HasSubstr("CPU segment at node 'Frobnicate_0' (com.acme.Frobnicate): ONNX Runtime ")));
  EXPECT_THAT(create("node '/#17'"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                              HasSubstr("CPU segment at node '/#17': ")));
  EXPECT_THAT(create(""), StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("set ANEMONE_ORT_LIBRARY to")));
}

TEST(CpuSegment, AContributedOperatorRuns) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {1});
  const ValueId y = b.Floats("y", {1});
  Node& node = b.graph.nodes[b.Add("QuickGelu", {x}, {y})];
  node.domain = "com.microsoft";
  node.version = 1;
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, {});
  ASSERT_TRUE(segment.ok()) << segment.status();
}

TEST(CpuSegment, NoNodesIsRefused) {
  EXPECT_THAT(CpuSegment::Create(Runtime(), Graph{}, {}, {}, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want at least one node")));
}

TEST(CpuSegment, AnErrorWhileRunningIsOneLine) {
  GraphBuilder b;
  const ValueId index = b.Tensor("index", DataType::kInt64, {1});
  const ValueId y = b.Floats("y", {1});
  b.Add("Gather", {b.Constant("two", Tensor::Floats({2}, {1, 2})), index}, {y});
  const auto segment = CpuSegment::Create(Runtime(), b.graph, {0}, {index}, {y}, {});
  const auto out = (*segment)->Run({ToValue(Runtime(), Tensor::Int64s({1}, {99}))}, {{}});
  EXPECT_THAT(out, StatusIs(absl::StatusCode::kInvalidArgument,
                            HasSubstr("CPU segment at node 'Gather_0' (Gather): ONNX Runtime ")));
  EXPECT_THAT(std::string(out.status().message()), Not(HasSubstr("\n")));
}

TEST(CpuSegment, NamesANodeWithoutANameByWhatItMakes) {
  GraphBuilder b;
  const ValueId x = b.Floats("x", {1});
  const ValueId y = b.Floats("y", {1});
  Node& node = b.graph.nodes[b.Add("Frobnicate", {x}, {y})];
  node.name.clear();
  node.domain = "com.acme";
  node.version = 1;
  EXPECT_THAT(CpuSegment::Create(Runtime(), b.graph, {0}, {x}, {y}, {}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("CPU segment at node (com.acme.Frobnicate) that makes 'y': ")));
}

Node NodeOf(const std::string& domain, int version) {
  Node node;
  node.op_type = "Op";
  node.domain = domain;
  node.version = version;
  return node;
}

TEST(Opsets, NodesOfTwoVersionsDoNotShareASegment) {
  GraphBuilder b;
  b.graph.nodes = {NodeOf("", 21), NodeOf("", 21), NodeOf("ai.onnx.ml", 3)};
  EXPECT_THAT(OpsetClasses(b.graph), ElementsAre(0, 0, 0));
  b.graph.nodes = {NodeOf("", 21), NodeOf("", 24), NodeOf("ai.onnx.ml", 3), NodeOf("", 21)};
  EXPECT_THAT(OpsetClasses(b.graph), ElementsAre(1, 2, 0, 1));
  b.graph.nodes = {NodeOf("", 21), NodeOf("", 24)};
  EXPECT_THAT(
      CpuSegment::Create(Runtime(), b.graph, {0, 1}, {}, {}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(
                   "node (Op): want opset 21 of domain '', as for the nodes before it, found 24")));
}

TEST(Opsets, ABodyCounts) {
  Graph body;
  body.nodes = {NodeOf("", 24), NodeOf("ai.onnx.ml", 5)};
  Node outer = NodeOf("", 21);
  outer.attributes = {{"body", std::make_shared<const Graph>(body)}};
  EXPECT_THAT(OpsetsOf(outer), ElementsAre(std::pair<const std::string, int64_t>("", 24),
                                           std::pair<const std::string, int64_t>("ai.onnx.ml", 5)));
  Graph graph;
  graph.nodes = {outer, NodeOf("", 21), NodeOf("", 24)};
  EXPECT_THAT(OpsetClasses(graph), ElementsAre(1, 2, 1));
}

}  // namespace
}  // namespace anemone
