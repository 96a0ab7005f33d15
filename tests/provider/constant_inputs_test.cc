// Sessions of models whose initializers are also inputs, as PyTorch's keep_initializers_as_inputs
// writes them: constants by default, inputs with a default if the settings name them.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/usage_error.h"
#include "provider/compiled/compile.h"
#include "tests/on_onnx_runtime.h"
#include "tests/provider/ramp.h"
#include "tests/provider/sessions.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr char kNet[] =
    "(float[1,4,8,8] x, float[4,4,3,3] w, float[4] b, int64[2] s) => (float[4,64] y) "
    "<float[4,4,3,3] w, float[4] b, int64[2] s = {4, 64}> "
    "{ c = Conv<pads = [1,1,1,1]>(x, w, b) r = Relu(c) y = Reshape(r, s) }";

std::string Net() { return FilledBytes(kNet, -1, 1, 3); }

std::vector<std::string> NamesOf(const std::vector<PortInfo>& ports) {
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const PortInfo& port : ports) names.push_back(port.name);
  return names;
}

Tensor OutputOf(const Session& session, const std::map<std::string, Tensor>& inputs) {
  auto made = session.Run(inputs);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->at("y") : Tensor();
}

void ExpectNear(const Tensor& want, const Tensor& got) {
  ASSERT_EQ(want.dims(), got.dims());
  for (int64_t i = 0; i < want.elements(); ++i) {
    ASSERT_NEAR(want.at<float>(i), got.at<float>(i), 0.02) << i;
  }
}

TEST(ConstantInputsOfASession, AreNoPorts) {
  const Session session = MustLoad(Net(), {});
  EXPECT_THAT(NamesOf(session.inputs()), ElementsAre("x"));
  EXPECT_THAT(session.ConstantInputs(), UnorderedElementsAre("w", "b", "s"));
  EXPECT_EQ(1, session.Summary().engine_macs_share);
  EXPECT_EQ(0, session.Summary().cpu_segments);
  EXPECT_THAT(
      session.Run({{"x", Ramp({1, 4, 8, 8})}, {"w", Ramp({4, 4, 3, 3})}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("input 'w': it is a constant, because it is an initializer of the "
                         "model; load the model with --overridable w to keep it an input")));
}

TEST(ConstantInputsOfASession, HaveTheSamePortsOnTheCpu) {
  const Tensor x = Ramp({1, 4, 8, 8});
  for (const std::vector<std::string>& overridable : {std::vector<std::string>(), {"b"}, {"all"}}) {
    const Session engine = MustLoad(Net(), {.overridable = overridable});
    const Session cpu = MustLoad(Net(), {.policy = "cpu", .overridable = overridable});
    EXPECT_EQ(0, cpu.Summary().engine_segments);
    EXPECT_EQ(NamesOf(engine.inputs()), NamesOf(cpu.inputs()));
    EXPECT_EQ(engine.ConstantInputs(), cpu.ConstantInputs());
    ExpectNear(OutputOf(cpu, {{"x", x}}), OutputOf(engine, {{"x", x}}));
    const std::map<std::string, Tensor> given = {{"x", x}, {"b", Ramp({4})}};
    if (!overridable.empty()) ExpectNear(OutputOf(cpu, given), OutputOf(engine, given));
  }
  EXPECT_THAT(Session::LoadBytes(Net(), {.policy = "cpu", .overridable = {"v"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--overridable v: ")));
}

TEST(ConstantInputsOfASession, GetNewWeightsLikeOthers) {
  const Tensor x = Ramp({1, 4, 8, 8}), w = Ramp({4, 4, 3, 3});
  const Session kept = MustLoad(Net(), {.overridable = {"w"}});
  for (const char* policy : {"max-engine", "cpu"}) {
    Session session = MustLoad(Net(), {.policy = policy});
    const Tensor before = OutputOf(session, {{"x", x}});
    ASSERT_THAT(session.UpdateWeights({{"w", w}}), IsOk());
    const Tensor after = OutputOf(session, {{"x", x}});
    EXPECT_NE(before.at<float>(9), after.at<float>(9));
    ExpectNear(OutputOf(kept, {{"x", x}, {"w", w}}), after);
  }
}

TEST(ConstantInputsOfASession, AreKeptForAState) {
  const std::string model = FilledBytes(
      "(float[1,4] x, float[1,4] h) => (float[1,4] y, float[1,4] n) <float[1,4] h> "
      "{ y = Add(x, h) n = Relu(y) }",
      1, 2, 5);
  EXPECT_THAT(NamesOf(MustLoad(model, {}).inputs()), ElementsAre("x"));
  const Session session = MustLoad(model, {.state = {{"h", "n"}}});
  EXPECT_THAT(NamesOf(session.inputs()), ElementsAre("x", "h"));
  const Tensor x = Tensor::Floats({1, 4}, {1, 2, 3, 4});
  OutputOf(session, {{"x", x}});
  EXPECT_EQ(4, OutputOf(session, {{"x", x}}).at<float>(1));
}

TEST(ConstantInputsOfASession, ACompiledFolderRemembersThem) {
  const TemporaryFolder folder(testing::TempDir());
  const std::string file = folder.path() + "/net.onnx";
  std::ofstream(file, std::ios::binary) << Net();
  const std::string constant = folder.path() + "/constant", kept = folder.path() + "/kept";
  ASSERT_THAT(CompileModel(file, {}, constant).status(), IsOk());
  ASSERT_THAT(CompileModel(file, {.overridable = {"b"}}, kept).status(), IsOk());
  std::filesystem::remove(file);
  const Tensor x = Ramp({1, 4, 8, 8}), b = Ramp({4});

  const auto with = Session::Load(kept);
  ASSERT_THAT(with.status(), IsOk());
  EXPECT_THAT(NamesOf(with->inputs()), ElementsAre("x", "b"));
  EXPECT_THAT(with->ConstantInputs(), UnorderedElementsAre("w", "s"));
  const Session whole = MustLoad(Net(), {.overridable = {"b"}});
  ExpectNear(OutputOf(whole, {{"x", x}, {"b", b}}), OutputOf(*with, {{"x", x}, {"b", b}}));

  const auto without = Session::Load(constant);
  ASSERT_THAT(without.status(), IsOk());
  EXPECT_THAT(NamesOf(without->inputs()), ElementsAre("x"));
  EXPECT_THAT(without->Run({{"x", x}, {"b", b}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--overridable b")));
  const auto refused = Session::Load(constant, {.overridable = {"b"}});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("the model was compiled with no overridable, not b; "
                                          "compile it again")));
  EXPECT_TRUE(IsUsageError(refused.status()));
}

}  // namespace
}  // namespace anemone
