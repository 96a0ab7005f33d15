// ONNX Runtime reads and runs the original file.
#include "fallback/reference_model.h"

#include <fstream>

#include "onnx/onnx_pb.h"
#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::ValueInfoProto Port(const std::string& name) {
  onnx::ValueInfoProto port;
  port.set_name(name);
  auto* type = port.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param(std::string("batch"));
  type->mutable_shape()->add_dim()->set_dim_value(2);
  return port;
}

// y = x + bias. The bias is in a file next to the model, and one input may be omitted.
std::string WriteModel(int64_t opset) {
  const std::string folder = ::testing::TempDir() + "/";
  const float bias[] = {10, 20};
  std::ofstream(folder + "bias.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(bias), sizeof(bias));
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(std::string("g"));
  for (const std::string name : {"x", "bias"}) *graph.add_input() = Port(name);
  *graph.add_output() = Port("y");
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(std::string("bias"));
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(1);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  tensor.add_external_data()->set_key(std::string("location"));
  tensor.mutable_external_data(0)->set_value(std::string("bias.bin"));
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(std::string("Add"));
  for (const std::string name : {"x", "bias"}) node.add_input(name);
  node.add_output(std::string("y"));
  std::string path = folder + "reference_" + std::to_string(opset) + ".onnx";
  std::ofstream file(path, std::ios::binary);
  model.SerializeToOstream(&file);
  return path;
}

TEST(ReferenceModel, RunsByName) {
  const auto model = ReferenceModel::Open(Runtime(), WriteModel(21), {});
  ASSERT_TRUE(model.ok()) << model.status();
  const CpuValue x = ToValue(Runtime(), Tensor::Floats({2, 2}, {1, 2, 3, 4}));
  const auto out = (*model)->Run({{"x", x}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(ToFloats((*out)[0]), ElementsAre(11, 22, 13, 24));
  const CpuValue bias = ToValue(Runtime(), Tensor::Floats({1, 2}, {0, 0}));
  EXPECT_THAT(ToFloats((*(*model)->Run({{"x", x}, {"bias", bias}}))[0]), ElementsAre(1, 2, 3, 4));
}

TEST(ReferenceModel, TellsItsPorts) {
  const auto model = ReferenceModel::Open(Runtime(), WriteModel(21), {});
  ASSERT_EQ((*model)->inputs().size(), 2);
  const CpuPort& x = (*model)->inputs()[0];
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(x.kind, CpuValue::Kind::kTensor);
  EXPECT_EQ(x.type, DataType::kFloat);
  ASSERT_EQ(x.shape.size(), 2);
  EXPECT_EQ(x.shape[0].symbol, "batch");
  EXPECT_FALSE(x.shape[0].known());
  EXPECT_EQ(x.shape[1].size, 2);
  EXPECT_FALSE(x.has_default);
  EXPECT_EQ((*model)->inputs()[1].name, "bias");
  EXPECT_TRUE((*model)->inputs()[1].has_default);
  EXPECT_EQ((*model)->outputs()[0].name, "y");
}

TEST(ReferenceModel, WrongNamesAreListed) {
  const std::string path = WriteModel(21);
  const auto model = ReferenceModel::Open(Runtime(), path, {});
  const CpuValue x = ToValue(Runtime(), Tensor::Floats({1, 2}, {1, 2}));
  EXPECT_THAT((*model)->Run({{"z", x}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(path + ": want inputs named x, bias, found z")));
  EXPECT_THAT((*model)->Run({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(path + ", input 'x': want a value, found none")));
}

TEST(ReferenceModel, WhatIsRefusedIsAStatus) {
  const std::string path = WriteModel(999);
  EXPECT_THAT(ReferenceModel::Open(Runtime(), path, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path + ": ONNX Runtime ")));
  EXPECT_THAT(ReferenceModel::Open(Runtime(), "/nowhere/x.onnx", {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/x.onnx: no such file")));
  const std::string damaged = ::testing::TempDir() + "/damaged.onnx";
  std::ofstream(damaged) << "not a protobuf";
  EXPECT_THAT(
      ReferenceModel::Open(Runtime(), damaged, {}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr(damaged + ": truncated, damaged or not")));
}

TEST(ReferenceModel, EverySettingRuns) {
  const std::string path = WriteModel(21);
  const CpuValue x = ToValue(Runtime(), Tensor::Floats({1, 2}, {1, 2}));
  for (const OrtOptimization optimization : {OrtOptimization::kNone, OrtOptimization::kBasic,
                                             OrtOptimization::kExtended, OrtOptimization::kAll}) {
    for (const bool on : {false, true}) {
      const auto model = ReferenceModel::Open(Runtime(), path, {optimization, on, on, on});
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_THAT(ToFloats((*(*model)->Run({{"x", x}}))[0]), ElementsAre(11, 22));
    }
  }
}

}  // namespace
}  // namespace anemone
