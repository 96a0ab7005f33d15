#include "provider/range_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "anemone/session.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RangeWatch, WarnsOnceOfInputsAndOnceOfOutputs) {
  std::vector<std::string> lines;
  RangeWatch watch([&](const RangeWarning& warning) {
    lines.push_back(RangeWarningText(warning, "--policy ", ""));
  });
  math::Tally fine, bad = {.overflowed = 1, .not_finite = 2};
  EXPECT_EQ(watch.ForInput(fine), &fine);
  EXPECT_EQ(watch.ForOutput(fine), &fine);
  const std::string unit = "y#12";
  watch.Input(fine, 2, "x", unit);
  watch.Output(fine, 2, "y", unit);
  EXPECT_THAT(lines, ElementsAre());
  for (int i = 0; i < 2; ++i) {
    watch.Input(bad, 2, "x\n", unit);
    watch.Output(bad, 2, "y", {});
  }
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("1 of 2 values of 'x\\n' is above 65504"),
                                       HasSubstr("the node that makes 'y' reads it first: --policy "
                                                 "refuse:node:y runs it on the CPU")),
                                 AllOf(HasSubstr("2 of 2 values of 'y' are not finite"),
                                       Not(HasSubstr("policy")))));
  EXPECT_EQ(watch.ForInput(fine), nullptr);
  EXPECT_EQ(watch.ForOutput(fine), nullptr);
}

TEST(RangeWatch, ASessionKeepsTheWarningsOfItsRuns) {
  auto session =
      Session::LoadBytes(BytesOfText("(float[3] x) => (float[3] y) { a = Neg(x) y = Mul(a, x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  const auto run = [&](std::vector<float> x) {
    EXPECT_TRUE(session->Run({{"x", Tensor::Floats({3}, x)}}).ok());
  };
  run({1, 2, 3});
  EXPECT_THAT(session->RunWarnings(), ElementsAre());
  run({1, 300, 3});
  run({1, 300, 1e6});
  run({1, 300, 1e6});
  EXPECT_THAT(
      session->RunWarnings(),
      ElementsAre(AllOf(HasSubstr("1 of 3 values of 'y' is not finite"),
                        HasSubstr("node /#1 (Mul) computes it: --policy refuse:node:y")),
                  AllOf(HasSubstr("1 of 3 values of 'x' is above 65504"),
                        HasSubstr("node /#0 (Neg) reads it first: --policy refuse:node:a"))));
}

// A quantization clips what enters the engine as infinity, so that no value is infinite behind it.
TEST(RangeWatch, ANanBeforeAQuantizationEntersAsInfinity) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[3] x) => (float[3] y) <float s = {0.5}, int8 z = {0}> "
                  "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Neg(d) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  const auto outputs = session->Run({{"x", Tensor::Floats({3}, {1, NAN, 3})}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->at("y").at<float>(1), -63.5f);
  EXPECT_THAT(session->RunWarnings(),
              ElementsAre(HasSubstr("1 of 3 values of 'x' is above 65504, the largest number of "
                                    "fp16, or NaN, and enters the engine as infinity")));
}

// The unit of a Clip is a Neuron, which is no word of the model.
TEST(RangeWatch, TheAdviceHelps) {
  const std::string model = BytesOfText(
      "(float[3] x) => (float[3] y) <float a = {-50000}, float b = {50000}> "
      "{ c = Clip(x, a, b) d = Add(c, c) y = Neg(d) }");
  const auto run = [&](const std::string& policy) {
    auto session = Session::LoadBytes(model, {.policy = policy});
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_TRUE(session->Run({{"x", Tensor::Floats({3}, {1, 1e6, 40000})}}).ok());
    return session->RunWarnings();
  };
  EXPECT_THAT(run("maximal"), ElementsAre(AllOf(HasSubstr("of 'x' is above 65504"),
                                                HasSubstr("(Clip) reads it first: --policy "
                                                          "refuse:node:c"))));
  EXPECT_THAT(run("refuse:node:c"), ElementsAre());
}

}  // namespace
}  // namespace anemone
