// The option --clamp-activations: an infinity before a softmax or a layer normalization becomes the
// largest finite number of fp16, which does not spread.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "anemone/session.h"
#include "engine/formats/json.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> UnitsOf(const Session& session) {
  std::vector<std::string> units;
  const Json plan = Json::parse(session.PlanJson());
  for (const Json& node : plan["nodes"]) {
    for (const Json& unit : node["units"]) units.push_back(unit.get<std::string>());
  }
  return units;
}

Tensor OutputOf(const std::string& model, const Tensor& x, bool clamps) {
  auto session = Session::LoadBytes(BytesOfText(model), {.clamp_activations = clamps});
  EXPECT_TRUE(session.ok()) << session.status();
  auto got = session->Run({{"x", x}});
  EXPECT_TRUE(got.ok()) << got.status();
  return got->at("y");
}

// 16.1 to the 4th power, 67,189, is infinite in fp16.
TEST(ClampActivations, ALayerNormalizationStaysFinite) {
  constexpr char kModel[] =
      "(float[1,8] x) => (float[1,8] y) <float[8] w = {1, 1, 1, 1, 1, 1, 1, 1}> "
      "{ s = Mul(x, x) c = Mul(s, s) y = LayerNormalization(c, w) }";
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, 8});
  for (int i = 0; i < 8; ++i) x.mutable_data<float>()[i] = 2.3F * static_cast<float>(i);
  const auto want = RunOnOnnxRuntime(BytesOfText(kModel), {{"x", x}});
  ASSERT_TRUE(want.ok()) << want.status();
  const Tensor plain = OutputOf(kModel, x, false), clamped = OutputOf(kModel, x, true);
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(std::isfinite(plain.at<float>(i)));
    EXPECT_NEAR(clamped.at<float>(i), want->at("y").at<float>(i), 0.05);
  }
}

TEST(ClampActivations, OrdinaryValuesDoNotChange) {
  constexpr char kModel[] =
      "(float[1,8] x) => (float[1,8] y) <float[8] w = {1, 2, 1, 2, 1, 2, 1, 2}> "
      "{ n = LayerNormalization(x, w) y = Softmax(n) }";
  Tensor x = Tensor::Zeros(DataType::kFloat, {1, 8});
  for (int i = 0; i < 8; ++i) x.mutable_data<float>()[i] = 100.0F * static_cast<float>(i * i % 5);
  const Tensor plain = OutputOf(kModel, x, false), clamped = OutputOf(kModel, x, true);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(plain.at<float>(i), clamped.at<float>(i));
}

TEST(ClampActivations, OnlyTheUnitsThatNeedItAreClamped) {
  constexpr char kModel[] =
      "(float[2,8] x) => (float[2,8] y, float[2,8] z) { r = Softmax(x) y = Softmax(r) z = Relu(x) "
      "}";
  auto plain = Session::LoadBytes(BytesOfText(kModel));
  auto clamped = Session::LoadBytes(BytesOfText(kModel), {.clamp_activations = true});
  ASSERT_TRUE(plain.ok() && clamped.ok());
  EXPECT_EQ(UnitsOf(*plain).size() + 2, UnitsOf(*clamped).size());
}

TEST(ClampActivations, AttentionIsNotOneUnit) {
  constexpr char kModel[] =
      "(float[1,2,16,8] q, float[1,2,8,16] k, float[1,2,16,8] v) => (float[1,2,16,8] y) "
      "{ s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, v) }";
  auto plain = Session::LoadBytes(BytesOfText(kModel));
  auto clamped = Session::LoadBytes(BytesOfText(kModel), {.clamp_activations = true});
  ASSERT_TRUE(plain.ok() && clamped.ok());
  EXPECT_THAT(UnitsOf(*plain), Contains("SDPA"));
  EXPECT_THAT(UnitsOf(*clamped), Not(Contains("SDPA")));
  EXPECT_THAT(UnitsOf(*clamped), Contains("Neuron"));
}

}  // namespace
}  // namespace anemone
