// Memory of the engine that a caller reads and writes: the bits are those of Session::Run().
#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <thread>

#include "anemone/session.h"
#include "anemone/surfaces.h"
#include "math/core/half.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/status_matchers.h"

namespace anemone::port_surfaces {
namespace {

using testing::HasSubstr;

// Rows of 5 elements, which are padded on the route netplist. `k` is read on the CPU.
constexpr char kModel[] =
    "(float[1,4,3,5] x, float[1,4,3,5] z, int64[2] k) => "
    "(float[1,4,3,5] y, float[1,4,3,5] u, int64[2] n, float[1,4,3,5] i) "
    "<float[4,4,3,3] w> { a = Conv<pads = [1,1,1,1]>(x, w) y = Add(a, z) u = Tanh(y) "
    "n = Neg(k) i = Identity(z) }";

std::string Bytes(float low = -0.4f) {
  onnx::ModelProto model = ModelOfText(kModel);
  std::mt19937 random(3);
  FillDeclared(*model.mutable_graph(), low, 0.4f, random);
  return model.SerializeAsString();
}

Session Loaded(const Settings& settings) {
  auto session = Session::LoadBytes(Bytes(), settings);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

math::Half& At(const SurfaceView& view, int64_t element) {
  std::byte* place = view.data;
  for (size_t axis = view.dims.size(); axis-- > 0;) {
    place += element % view.dims[axis] * view.strides[axis];
    element /= view.dims[axis];
  }
  return *reinterpret_cast<math::Half*>(place);
}

void Put(const Tensor& tensor, const SurfaceView& view) {
  for (int64_t i = 0; i < tensor.elements(); ++i) At(view, i) = math::ToHalf(tensor.at<float>(i));
}

void ExpectIs(const Tensor& want, const SurfaceView& view) {
  ASSERT_EQ(want.dims(), view.dims);
  for (int64_t i = 0; i < want.elements(); ++i) {
    ASSERT_EQ(want.at<float>(i), math::ToFloat(At(view, i))) << i;
  }
}

std::map<std::string, Tensor> Inputs(float first) {
  return {{"x", Ramp({1, 4, 3, 5}, first)},
          {"z", Ramp({1, 4, 3, 5}, -first)},
          {"k", Tensor::Int64s({2}, {3, 4})}};
}

class PortSurfaces : public testing::TestWithParam<Settings> {};

TEST_P(PortSurfaces, HaveTheBitsOfRun) {
  const Session session = Loaded(GetParam());
  auto made = session.MakeSurfaces({"x", "y"});
  ASSERT_TRUE(made.ok()) << made.status();
  const Surfaces surfaces = *std::move(made);
  const SurfaceView x = *surfaces.View("x"), y = *surfaces.View("y");
  ExpectIs(Tensor::Zeros(DataType::kFloat, {1, 4, 3, 5}), x);
  for (float first = -2; first < 2; ++first) {
    auto inputs = Inputs(first);
    const auto want = session.Run(inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    Put(inputs.at("x"), x);
    const auto got = surfaces.Run({{"z", inputs.at("z")}, {"k", inputs.at("k")}});
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectIs(want->at("y"), y);
    ASSERT_EQ(3u, got->size());
    for (const char* other : {"u", "n", "i"}) {
      const auto a = want->at(other).bytes(), b = got->at(other).tensor.bytes();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << other;
    }
    EXPECT_EQ(x.data, surfaces.View("x")->data);
    ExpectIs(inputs.at("x"), x);  // an input keeps its value
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, PortSurfaces,
                         testing::Values(Settings{}, Settings{.numerics = "exact"},
                                         Settings{.heed_limits = true}, Settings{.route = "mil"}));

TEST(PortSurface, HasPaddedRowsWhereTheSiliconWantsThem) {
  const auto strides_with = [](const Settings& settings) {
    const Session session = Loaded(settings);
    const auto surfaces = session.MakeSurfaces({"x"});
    EXPECT_TRUE(surfaces.ok()) << surfaces.status();
    return surfaces->View("x")->strides;
  };
  EXPECT_THAT(strides_with({.heed_limits = true}), testing::ElementsAre(4 * 3 * 64, 3 * 64, 64, 2));
  EXPECT_THAT(strides_with({}), testing::ElementsAre(4 * 3 * 10, 3 * 10, 10, 2));
}

TEST(PortSurface, TakesNoNanAndShowsNans) {
  const Session session = Loaded({});
  const auto surfaces = session.MakeSurfaces({"x", "u", "y"});
  ASSERT_TRUE(surfaces.ok()) << surfaces.status();
  const SurfaceView x = *surfaces->View("x");
  auto inputs = Inputs(1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  inputs.at("x").mutable_data<float>()[7] = nan;
  Put(inputs.at("x"), x);
  const auto want = session.Run(inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_THAT(surfaces->Run({{"z", inputs.at("z")}, {"k", inputs.at("k")}}).status(), IsOk());
  EXPECT_EQ(std::numeric_limits<float>::infinity(), math::ToFloat(At(x, 7)));
  for (const char* output : {"u", "y"}) {
    const SurfaceView view = *surfaces->View(output);
    for (int64_t i = 0; i < 60; ++i) {
      const float a = want->at(output).at<float>(i), b = math::ToFloat(At(view, i));
      EXPECT_TRUE(a == b || (a != a && b != b)) << output << " " << i;
    }
  }
}

TEST(PortSurface, BelongsToNoOtherRun) {
  const Session session = Loaded({});
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto surfaces = session.MakeSurfaces({"x", "y"});
      ASSERT_TRUE(surfaces.ok()) << surfaces.status();
      const auto inputs = Inputs(static_cast<float>(t));
      const auto want = session.Run(inputs);
      ASSERT_TRUE(want.ok()) << want.status();
      Put(inputs.at("x"), *surfaces->View("x"));
      for (int i = 0; i < 10; ++i) {
        const auto got = surfaces->Run({{"z", inputs.at("z")}, {"k", inputs.at("k")}});
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectIs(want->at("y"), *surfaces->View("y"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PortSurface, StaysWithNewWeights) {
  Session session = Loaded({});
  const auto surfaces = session.MakeSurfaces({"x", "y"});
  ASSERT_TRUE(surfaces.ok()) << surfaces.status();
  std::vector<float> weights(4 * 4 * 9);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 5) / 8 - 0.2f;
  ASSERT_THAT(session.UpdateWeights({{"w", Tensor::Floats({4, 4, 3, 3}, weights)}}), IsOk());
  const auto inputs = Inputs(1);
  const auto want = session.Run(inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  Put(inputs.at("x"), *surfaces->View("x"));
  ASSERT_THAT(surfaces->Run({{"z", inputs.at("z")}, {"k", inputs.at("k")}}).status(), IsOk());
  ExpectIs(want->at("y"), *surfaces->View("y"));
}

TEST(PortSurfaceErrors, SayWhatToDo) {
  const Session session = Loaded({});
  const struct {
    std::vector<std::string> ports;
    absl::StatusCode code;
    const char* told;
  } rows[] = {
      {{"xx"}, absl::StatusCode::kInvalidArgument, "'xx' is no input or output of the model"},
      {{"x", "x"}, absl::StatusCode::kInvalidArgument, "'x' is given twice"},
      {{"k"}, absl::StatusCode::kFailedPrecondition, "'k': only an input of floats that nothing"},
      {{"n"}, absl::StatusCode::kFailedPrecondition, "'n': only an output of floats that the"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(session.MakeSurfaces(row.ports).status(), StatusIs(row.code, HasSubstr(row.told)));
  }
  const auto surfaces = session.MakeSurfaces({"x"});
  ASSERT_TRUE(surfaces.ok()) << surfaces.status();
  EXPECT_THAT(surfaces->View("y").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(": x")));
  const auto inputs = Inputs(0);
  EXPECT_THAT(surfaces->Run({inputs.begin(), inputs.end()}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x' has a surface")));
  EXPECT_THAT(surfaces->Run({}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'z'")));
  const Session stateful = Loaded({.state = {{"z", "y"}}});
  EXPECT_THAT(stateful.MakeSurfaces({"x"}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("keeps a state")));
  const auto free = Session::LoadBytes(
      ModelOfText("(float[N,2] x) => (float[N,2] y) { y = Relu(x) }").SerializeAsString());
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_THAT(free->MakeSurfaces({"x"}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("free dimensions")));
}

}  // namespace
}  // namespace anemone::port_surfaces
