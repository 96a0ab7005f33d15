// Tests Graph -> ModelProto: weights are external, fills stay one value, bodies use outer names.
#include "importer/write/to_onnx.h"

#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ValueId IdOf(const Graph& graph, absl::string_view name) {
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (graph.values[id].name == name) return id;
  }
  ADD_FAILURE() << name;
  return kNone;
}

Tensor Ones(std::vector<int64_t> dims) {
  const float one = 1;
  return Tensor::Fill(DataType::kFloat, std::move(dims),
                      {reinterpret_cast<const std::byte*>(&one), sizeof(one)});
}

std::vector<std::string> OpTypes(const onnx::GraphProto& graph) {
  std::vector<std::string> types;
  for (const onnx::NodeProto& node : graph.node()) types.push_back(node.op_type());
  return types;
}

TEST(ToOnnx, LargeConstantsAreHandedOverBesideTheModel) {
  onnx::ModelProto proto =
      ParseModel("agraph (float[1] x) => (float y) { t = Add(x, w)  y = Mul(t, s) }");
  AddInitializer<float>(proto, "w", onnx::TensorProto::FLOAT, {300}, std::vector<float>(300, 2));
  AddInitializer<float>(proto, "s", onnx::TensorProto::FLOAT, {1}, {3});
  const auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  const auto written = ToOnnx(model->graph, {});
  ASSERT_THAT(written, IsOk());
  EXPECT_EQ(written->proto.ir_version(), kWorkingIrVersion);
  EXPECT_EQ(written->proto.opset_import(0).version(), kWorkingOpset);
  ASSERT_THAT(written->external, SizeIs(1));
  EXPECT_EQ(written->external[0].name, "w");
  EXPECT_EQ(written->external[0].tensor.bytes().data(),
            ValueNamed(model->graph, "w").constant->bytes().data());
  ASSERT_EQ(written->proto.graph().initializer_size(), 2);
  EXPECT_EQ(written->proto.graph().initializer(0).external_data(0).value(), kExternalMarker);
  EXPECT_THAT(written->proto.graph().initializer(1).raw_data(), SizeIs(4));

  const auto in_one = ToOnnx(model->graph, {.external_from = kNeverExternal});
  ASSERT_THAT(in_one, IsOk());
  EXPECT_THAT(in_one->external, IsEmpty());
  EXPECT_THAT(in_one->proto.graph().initializer(0).raw_data(), SizeIs(1200));
}

TEST(ToOnnx, SomeNodesWithTheConstantsTheyNeed) {
  const auto model = Read(ParseModel(R"(
      agraph (float[N, 3] x) => (float y) <float a = {1}, float b = {2}> {
        t = Add(x, a)
        u = Neg(t)
        y = Mul(u, b)
      })"));
  ASSERT_THAT(model, IsOk());
  const Graph& graph = model->graph;
  const auto written =
      ToOnnx(graph, {0, 1}, {IdOf(graph, "x")}, {IdOf(graph, "u"), IdOf(graph, "t")}, {});
  ASSERT_THAT(written, IsOk());
  const onnx::GraphProto& out = written->proto.graph();
  EXPECT_EQ(OpTypes(out), (std::vector<std::string>{"Add", "Neg"}));
  ASSERT_EQ(out.initializer_size(), 1);
  EXPECT_EQ(out.initializer(0).name(), "a");
  EXPECT_EQ(out.output(0).name(), "u");
  EXPECT_EQ(out.input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
  EXPECT_EQ(out.input(0).type().tensor_type().shape().dim(1).dim_value(), 3);

  EXPECT_THAT(ToOnnx(graph, {2}, {}, {IdOf(graph, "y")}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value 'u' is read by")));
  EXPECT_THAT(ToOnnx(graph, {2}, {IdOf(graph, "u")}, {IdOf(graph, "y")}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'u': its type is not")));
}

TEST(ToOnnx, FillsStayOneValue) {
  auto model = Read(ParseModel(
      "agraph (float[1] x) => (float y) <float big = {1}, float small = {1}, bfloat16 odd = {1}> "
      "{ y = my.Op(x, big, small, odd) }"));
  ASSERT_THAT(model, IsOk());
  Graph& graph = model->graph;
  graph.values[IdOf(graph, "big")].constant = Ones({1000, 1000, 1000});
  graph.values[IdOf(graph, "small")].constant = Ones({2, 2});
  const std::byte bf16[2] = {std::byte{0x80}, std::byte{0x3f}};
  graph.values[IdOf(graph, "odd")].constant = Tensor::Fill(DataType::kBFloat16, {1000}, bf16);
  const auto written = ToOnnx(graph, {});
  ASSERT_THAT(written, IsOk());
  const onnx::GraphProto& out = written->proto.graph();
  EXPECT_EQ(OpTypes(out), (std::vector<std::string>{"ConstantOfShape", "Op"}));
  EXPECT_EQ(out.node(0).output(0), "big");
  EXPECT_LT(out.ByteSizeLong(), 4000);
  EXPECT_THAT(written->external, IsEmpty());
  for (const onnx::TensorProto& tensor : out.initializer()) {
    const size_t want = tensor.name() == "small" ? 16 : tensor.name() == "odd" ? 2000 : 24;
    EXPECT_THAT(tensor.raw_data(), SizeIs(want)) << tensor.name();
  }
}

TEST(ToOnnx, PacksFillsOfSmallTypes) {
  const std::byte three{3};
  EXPECT_EQ(ToProto(Tensor::Fill(DataType::kInt4, {3}, {&three, 1})).raw_data(), "\x33\x33");
  EXPECT_EQ(ToProto(Tensor::Fill(DataType::kUInt2, {3}, {&three, 1})).raw_data(), "\xff");
}

TEST(ToOnnx, LargeConstantsOfBodiesMoveToTheMainGraph) {
  onnx::ModelProto proto = ParseModel(R"(
      agraph (bool c, float[1] x) => (float y) {
        y = If (c) <then_branch = g () => (float[M] r) { r = Add(x, w) },
                    else_branch = g () => (float[M] r) { t = Neg(x)  r = Mul(t, f) }>
      })");
  for (int branch : {0, 1}) {
    onnx::GraphProto* body =
        proto.mutable_graph()->mutable_node(0)->mutable_attribute(branch)->mutable_g();
    onnx::TensorProto* tensor = body->add_initializer();
    tensor->set_name(branch == 0 ? "w" : "f");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(300);
    tensor->set_raw_data(std::string(1200, '\0'));
  }
  auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  Node& node = model->graph.nodes[0];
  auto with_fill = std::make_shared<Graph>(*BodiesOf(node)[1]);
  with_fill->values[IdOf(*with_fill, "/else_branch:If_0/f")].constant = Ones({300});
  node.attributes[1].value = Attribute::GraphPtr(with_fill);
  auto written = ToOnnx(model->graph, {});
  ASSERT_THAT(written, IsOk());
  ASSERT_THAT(written->external, SizeIs(1));
  EXPECT_EQ(written->external[0].name, "/then_branch:If_0/w");
  EXPECT_EQ(OpTypes(written->proto.graph()), (std::vector<std::string>{"ConstantOfShape", "If"}));
}

TEST(ToOnnx, BodiesThatReturnOuterValuesDoSoByIdentity) {
  const auto model = Read(ParseModel(R"(
      agraph (bool c, float[2] x) => (float y, float z) {
        y, z = If (c) <
          then_branch = g () => (float[2] x, float[2] k) <float[2] k = {1, 2}> { },
          else_branch = g () => (float[2] r, float[2] r) { r = Neg(x) }>
      })"));
  ASSERT_THAT(model, IsOk());
  const auto written = ToOnnx(model->graph, {});
  ASSERT_THAT(written, IsOk());
  const onnx::NodeProto& node = written->proto.graph().node(0);
  EXPECT_EQ(OpTypes(node.attribute(0).g()), (std::vector<std::string>{"Identity", "Identity"}));
  EXPECT_EQ(OpTypes(node.attribute(1).g()), (std::vector<std::string>{"Neg", "Identity"}));
  EXPECT_NE(node.attribute(1).g().output(0).name(), node.attribute(1).g().output(1).name());
}

// The outer value may have been renamed after the body was read.
TEST(ToOnnx, CapturesAreWrittenByTheirOuterName) {
  auto model = Read(ParseModel(R"(
      agraph (bool c, float[2] x) => (float y) {
        t = Relu(x)
        y = If (c) <then_branch = g () => (float[2] r) { r = Neg(t) },
                    else_branch = g () => (float[2] r) { r = Abs(t) }>
      })"));
  ASSERT_THAT(model, IsOk());
  model->graph.values[IdOf(model->graph, "t")].name = "renamed";
  const auto written = ToOnnx(model->graph, {});
  ASSERT_THAT(written, IsOk());
  const onnx::NodeProto& node = written->proto.graph().node(1);
  EXPECT_EQ(node.attribute(0).g().node(0).input(0), "renamed");
  EXPECT_EQ(node.attribute(1).g().node(0).input(0), "renamed");
  EXPECT_THAT(ToProto(model->graph, model->graph.nodes[1]), IsOk());
}

TEST(ToOnnx, EveryKindOfAttributeComesBack) {
  onnx::ModelProto proto = ParseModel(R"(
      agraph (float x) => (float y) {
        y = my.Op <f = 1.5, i = 2, s = "three", t = float[2] {4, 5}, fs = [6.5], is = [7, 8],
                   ss = ["nine"], g = b (float p) => (float q) { q = Neg(p) }> (x)
      })");
  onnx::NodeProto* node = proto.mutable_graph()->mutable_node(0);
  onnx::AttributeProto* type = node->add_attribute();
  type->set_name("tp");
  type->set_type(onnx::AttributeProto::TYPE_PROTO);
  type->mutable_tp()->mutable_sequence_type();
  onnx::AttributeProto* tensors = node->add_attribute();
  tensors->set_name("ts");
  tensors->set_type(onnx::AttributeProto::TENSORS);
  *tensors->add_tensors() = ToProto(Tensor::Strings({1}, {"ten"}));
  const auto model = Read(proto);
  ASSERT_THAT(model, IsOk());
  const auto written = ToProto(model->graph, model->graph.nodes[0]);
  ASSERT_THAT(written, IsOk());
  ASSERT_EQ(written->attribute_size(), node->attribute_size());
  for (int i = 0; i < node->attribute_size(); ++i) {
    onnx::AttributeProto want = node->attribute(i);
    const onnx::AttributeProto& got = written->attribute(i);
    EXPECT_EQ(got.name(), want.name());
    EXPECT_EQ(got.type(), want.type());
    if (want.has_t()) {
      EXPECT_EQ(got.t().raw_data().substr(0, 4), std::string("\0\0\x80\x40", 4));
    } else if (want.has_g()) {
      EXPECT_EQ(got.g().node(0).op_type(), "Neg");
    } else {
      EXPECT_EQ(got.SerializeAsString(), want.SerializeAsString());
    }
  }
}

}  // namespace
}  // namespace anemone
