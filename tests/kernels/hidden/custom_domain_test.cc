// The operators of ai.anemone: each becomes its unit on the engine and gives the same bits in ONNX
// Runtime on the CPU.
#include "kernels/custom_domain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/hidden/custom_model.h"
#include "tests/kernels/hidden/hidden_examples.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

TEST(CustomDomain, EveryOperatorIsItsUnitOnTheEngineAndOnTheCpu) {
  for (const Example& example : HiddenExamples()) {
    SCOPED_TRACE(example.unit.type);
    for (DataType type : {DataType::kFloat, DataType::kFloat16}) {
      const Fed fed = Feed(example.unit, type);
      const Tensor want = WantOf(example.unit, type);
      ExpectSame(RunOnCpu(fed.bytes, fed.inputs), want);
      auto planned = RunPlanned(fed.bytes, example.unit.target, fed.inputs);
      ASSERT_TRUE(planned.ok()) << planned.status();
      EXPECT_EQ(planned->node["placement"], "engine");
      EXPECT_EQ(planned->node["units"], nlohmann::json({example.unit.type}));
      ExpectSame(planned->y, want);
    }
  }
}

TEST(CustomDomain, WhatATargetRefusesRunsOnTheCpu) {
  int refused = 0;
  for (const Example& example : HiddenExamples()) {
    SCOPED_TRACE(example.unit.type);
    const Fed fed = Feed(example.unit, DataType::kFloat);
    auto planned = RunPlanned(fed.bytes, "h11", fed.inputs);
    ASSERT_TRUE(planned.ok()) << planned.status();
    ExpectSame(planned->y, WantOf(example.unit, DataType::kFloat));
    if (planned->node["placement"] != "cpu") continue;
    ++refused;
    EXPECT_NE(planned->node["layer"], "coverage") << planned->node.dump();
  }
  EXPECT_GT(refused, 15);
}

TEST(CustomDomain, EveryRowOfTheCatalogueIsAnOperator) {
  EXPECT_EQ(CustomOps().size(), HiddenLayers().size());
  for (const HiddenLayer& layer : HiddenLayers()) {
    const CustomOp* op = FindCustomOp(layer.type);
    ASSERT_NE(op, nullptr) << layer.type;
    EXPECT_GE(op->bottoms, layer.operands.size()) << layer.type;
  }
  EXPECT_EQ(FindCustomOp("Conv"), nullptr);
}

TEST(CustomDomain, WeightsFollowTheBottoms) {
  const Tensor x = TensorOf({1, 2, 3, 4, 5, 6}, {1, 3, 2}, DataType::kFloat);
  const Tensor scale = Tensor::Floats({3}, {1, 2, -1}), bias = Tensor::Floats({3}, {0, 0.5, 1});
  const std::string bytes = ModelOf("GOC", DataType::kFloat)
                                .Input({1, 3, 2})
                                .ConstantInput(scale)
                                .ConstantInput(bias)
                                .bytes();
  const Tensor want = TensorOf({1, 2, 6.5, 8.5, -4, -5}, {1, 3, 2}, DataType::kFloat);
  ExpectSame(RunOnCpu(bytes, {{"x0", x}}), want);
  auto planned = RunPlanned(bytes, "h13", {{"x0", x}});
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->node["placement"], "engine") << planned->node.dump();
  ExpectSame(planned->y, want);
}

// With weights computed at run time, the node stays on the CPU.
TEST(CustomDomain, WeightsMadeAtRunTimeAreNotLowered) {
  const Tensors inputs = {{"x0", Tensor::Floats({2, 2}, {1, 2, 3, 4})},
                          {"x1", Tensor::Floats({1}, {2})},
                          {"x2", Tensor::Floats({1}, {1})}};
  const std::string bytes =
      ModelOf("GOC", DataType::kFloat).Input({2, 2}).Input({1}).Input({1}).bytes();
  auto planned = RunPlanned(bytes, "h13", inputs);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->node["layer"], "coverage");
  EXPECT_THAT(planned->node["message"], HasSubstr("input 'scale' computed at run time"));
  ExpectSame(planned->y, Tensor::Floats({2, 2}, {3, 5, 7, 9}));
}

TEST(CustomDomain, TheOutputHasTheFirstInputsRankIfItFits) {
  const Dims row = At(1, 1, 1, 1, 6);
  EXPECT_EQ(OnnxShapeOf(row, 0), (std::vector<int64_t>{1, 1, 1, 6}));
  EXPECT_EQ(OnnxShapeOf(row, 1), std::vector<int64_t>{6});
  EXPECT_EQ(OnnxShapeOf(row, 3), (std::vector<int64_t>{1, 1, 6}));
  EXPECT_EQ(OnnxShapeOf(At(2, 1, 3, 4, 5), 2), (std::vector<int64_t>{2, 3, 4, 5}));
  EXPECT_EQ(OnnxShapeOf(At(2, 6, 3, 4, 5), 4), (std::vector<int64_t>{2, 3, 6, 4, 5}));
  EXPECT_EQ(OnnxShapeOf(At(1, 1, 1, 1, 1), 0), std::vector<int64_t>{});
}

// Rank 5: depth is after the channels in ONNX and before them on the engine.
TEST(CustomDomain, RankFive) {
  std::vector<double> values(2 * 3 * 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Tensor x = TensorOf(values, {1, 2, 3, 1, 4}, DataType::kFloat);
  const std::string bytes = ModelOf("GlobalArgMinMax", DataType::kFloat)
                                .Input({1, 2, 3, 1, 4})
                                .Set("Type", "Max")
                                .Set("Dimension", "Depth")
                                .bytes();
  const Tensor want = TensorOf(std::vector<double>(8, 2), {1, 2, 1, 1, 4}, DataType::kFloat);
  ExpectSame(RunOnCpu(bytes, {{"x0", x}}), want);
  auto planned = RunPlanned(bytes, "h16", {{"x0", x}});
  ASSERT_TRUE(planned.ok()) << planned.status();
  ExpectSame(planned->y, want);
}

}  // namespace
}  // namespace anemone
