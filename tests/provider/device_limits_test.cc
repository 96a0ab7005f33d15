// The device's run-time limits in a session: a model runs without Settings::device_limits, fails
// with it, and runs again with heed_limits too if there is a workaround.
#include "engine/software/device_limits.h"

#include <gmock/gmock.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "tests/onnx_text.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Arrays = std::map<std::string, Tensor>;

// A tensor whose elements are all equal.
Tensor Full(std::vector<int64_t> dims, float value) {
  Tensor t = Tensor::Zeros(DataType::kFloat, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) t.mutable_data<float>()[i] = value;
  return t;
}

absl::StatusOr<Arrays> RunText(const std::string& text, const Arrays& inputs, Settings options) {
  auto session = Session::LoadBytes(BytesOfText(text), options);
  if (!session.ok()) return session.status();
  return session->Run(inputs);
}

class DeviceLimitsInASession : public testing::Test {
 protected:
  void SetUp() override {
    ProcessCompiles().Restart([this] { return now_; });
  }
  void TearDown() override { ProcessCompiles().Restart(); }

  absl::Time now_ = absl::UnixEpoch();
};

constexpr char kSmall[] = "(float[1,8] x) => (float[1,8] y) { y = Relu(x) }";

TEST_F(DeviceLimitsInASession, ASmallPortFailsUnlessPadded) {
  const Arrays x = {{"x", Full({1, 8}, 3)}};
  EXPECT_TRUE(RunText(kSmall, x, {}).ok());
  EXPECT_THAT(RunText(kSmall, x, {.device_limits = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("status=0x1d"), HasSubstr("input 'x' of 64 bytes"))));
  auto heeded = RunText(kSmall, x, {.device_limits = true, .heed_limits = true});
  ASSERT_TRUE(heeded.ok()) << heeded.status();
  EXPECT_EQ(heeded->at("y").at<float>(7), 3);
}

TEST_F(DeviceLimitsInASession, PortsOfTwoSizesFailUnlessPadded) {
  constexpr char kTwoSizes[] =
      "(float[1,768,1,32] x, float[1,1536,1,32] z) => (float[1,2304,1,32] y) "
      "{ y = Concat<axis = 1>(x, z) }";
  const Arrays inputs = {{"x", Full({1, 768, 1, 32}, 1)}, {"z", Full({1, 1536, 1, 32}, 2)}};
  EXPECT_TRUE(RunText(kTwoSizes, inputs, {}).ok());
  EXPECT_THAT(RunText(kTwoSizes, inputs, {.device_limits = true}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("status=0x1d"),
                             HasSubstr("input 'x' of 49152 bytes and input 'z' of 98304 bytes"))));
  auto heeded = RunText(kTwoSizes, inputs, {.device_limits = true, .heed_limits = true});
  ASSERT_TRUE(heeded.ok()) << heeded.status();
  EXPECT_EQ(heeded->at("y").at<float>(0), 1);
  EXPECT_EQ(heeded->at("y").at<float>(2304 * 32 - 1), 2);
}

TEST_F(DeviceLimitsInASession, MilPortsOutOfOrderAreSwappedUnlessBoundByName) {
  constexpr char kDifference[] =
      "(float[1,768,1,32] x, float[1,768,1,32] a) => (float[1,768,1,32] y) { y = Sub(x, a) }";
  const Arrays inputs = {{"x", Full({1, 768, 1, 32}, 5)}, {"a", Full({1, 768, 1, 32}, 3)}};
  struct {
    const char* route;
    bool limits, heeds;
    float want;
  } const kWays[] = {{"mil", false, false, 2},
                     {"mil", true, false, -2},
                     {"mil", true, true, 2},
                     {"mil", false, true, 2},
                     {"netplist", true, false, 2}};
  for (const auto& way : kWays) {
    auto got = RunText(kDifference, inputs,
                       {.route = way.route, .device_limits = way.limits, .heed_limits = way.heeds});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->at("y").at<float>(0), way.want) << way.route << way.limits << way.heeds;
  }
}

// A model with this number of engine segments, with CPU segments between them.
std::string Pieces(int count) {
  std::string nodes;
  for (int i = 0; i < count; ++i) {
    if (i > 0) {
      absl::StrAppend(&nodes, "m", i, " = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(v",
                      i - 1, ") ");
    }
    absl::StrAppend(&nodes, "v", i, " = Sigmoid(", i == 0 ? "x" : absl::StrCat("m", i), ") ");
  }
  return absl::StrCat("(float[1,1,4,4] x) => (float[1,1,4,4] v", count - 1, ") { ", nodes, "}");
}

TEST_F(DeviceLimitsInASession, AModelInTooManyPiecesDoesNotCompile) {
  const Arrays x = {{"x", Full({1, 1, 4, 4}, 1)}};
  Settings options = {.policy = "refuse:Pooling", .heed_limits = true};
  EXPECT_TRUE(RunText(Pieces(120), x, options).ok());
  options.device_limits = true;
  EXPECT_THAT(RunText(Pieces(120), x, options),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("compile 120")));
  ProcessCompiles().Restart();
  EXPECT_TRUE(RunText(Pieces(119), x, options).ok());
  EXPECT_THAT(RunText(kSmall, {{"x", Full({1, 8}, 3)}}, {.device_limits = true}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("compile 120")));
}

TEST_F(DeviceLimitsInASession, ASessionAfterOneThatFailedToCompileMustWait) {
  onnx::ModelProto judged = ModelOfText(
      "(float[1,6,1,1] x) => (float[1,6,1,1] y) { y = ai.anemone.MatrixDecomposition"
      "<Type = \"CrossProductOrthoNormalization\">(x) }");
  onnx::OperatorSetIdProto& import = *judged.add_opset_import();
  import.set_domain("ai.anemone");
  import.set_version(1);
  const Settings limited = {.device_limits = true, .heed_limits = true};
  EXPECT_THAT(Session::LoadBytes(judged.SerializeAsString(), limited),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("not run")));
  const Arrays x = {{"x", Full({1, 8}, 3)}};
  now_ += absl::Seconds(2);
  EXPECT_TRUE(RunText(kSmall, x, {}).ok());
  EXPECT_THAT(RunText(kSmall, x, limited),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("2 s after one that failed")));
  now_ += absl::Seconds(13);
  EXPECT_TRUE(RunText(kSmall, x, limited).ok());
}

}  // namespace
}  // namespace anemone
