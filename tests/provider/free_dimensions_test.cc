// Sessions of models with free dimensions: a run plans for the sizes of its arrays, and a limited
// number of plans is kept.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "engine/formats/json.h"
#include "importer/importer.h"
#include "provider/buckets/bucketing.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Every row of x affects y, so nothing can be padded. A dimension of z has no name.
constexpr char kTwoMeans[] =
    "(float[n,4] x, float[n,?] z) => (float[1,4] y, float[n,?] r) <int64[1] a = {0}> "
    "{ y = ReduceMean(x, a) r = Relu(z) }";

Tensors MeansInputs(int64_t rows, int64_t columns, float first = -2) {
  return {{"x", Ramp({rows, 4}, first)}, {"z", Ramp({rows, columns})}};
}

void ExpectMeans(const Tensors& inputs, const Tensors& got) {
  const Tensor& x = inputs.at("x");
  const Tensor& y = got.at("y");
  ASSERT_EQ(y.dims(), (std::vector<int64_t>{1, 4}));
  for (int64_t c = 0; c < 4; ++c) {
    float sum = 0;
    for (int64_t r = 0; r < x.dims()[0]; ++r) sum += x.at<float>(r * 4 + c);
    EXPECT_NEAR(y.at<float>(c), sum / static_cast<float>(x.dims()[0]), 2e-3);
  }
  EXPECT_EQ(got.at("r").dims(), inputs.at("z").dims());
}

TEST(FreeDimensions, TheModelOfFreeSizesHoldsNoLargeConstantsInMemory) {
  std::vector<int> elements(2048);
  std::iota(elements.begin(), elements.end(), 1);
  const std::string text = absl::StrCat("(float[n,64] x) => (float[n,32] y) <float[64,32] w = {",
                                        absl::StrJoin(elements, ","), "}> { y = MatMul(x, w) }");
  const auto import = [&](const ImportOptions& options) {
    return ImportBytes(BytesOfText(text), "", options);
  };
  auto free = import({});
  ASSERT_TRUE(free.ok()) << free.status();
  const auto largest = [](const Graph& graph) {
    size_t bytes = 0;
    for (const Value& value : graph.values) {
      if (value.constant) bytes = std::max(bytes, value.constant->bytes().size());
    }
    return bytes;
  };
  EXPECT_EQ(largest(free->graph), 2048 * sizeof(float));
  const Bucketing sizes = Bucketing::OfArrays(*std::move(free), {}, import);
  EXPECT_LT(largest(sizes.free().graph), 4096);
}

TEST(FreeDimensions, ARunPlansForTheSizesOfItsArrays) {
  auto session = Session::LoadBytes(BytesOfText(kTwoMeans));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->inputs()[0].dims, ElementsAre(-1, 4));
  EXPECT_THAT(session->inputs()[1].dims, ElementsAre(-1, -1));
  EXPECT_EQ(session->times().compile, 0);
  EXPECT_EQ(session->Summary().engine_segments, 0);
  for (const auto& [rows, columns] : {std::pair{3, 5}, {1, 5}, {3, 5}, {3, 1}}) {
    const Tensors inputs = MeansInputs(rows, columns);
    const auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectMeans(inputs, *got);
    EXPECT_GT(session->Summary().engine_segments, 0);
  }
  EXPECT_THAT(session->UseOf(MeansInputs(1, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("without any")));
}

TEST(FreeDimensions, AgreesWithOnnxRuntime) {
  std::mt19937 random(7);
  onnx::ModelProto model = ModelOfText(
      "(float[batch,seq,32] x) => (float[batch,seq,48] y) <float[32,64] v, float[64,48] w> "
      "{ h = MatMul(x, v) g = Sigmoid(h) m = MatMul(g, w) y = Softmax(m) }");
  FillDeclared(*model.mutable_graph(), -0.5f, 0.5f, random);
  const std::string bytes = model.SerializeAsString();
  auto session = Session::LoadBytes(bytes);
  ASSERT_TRUE(session.ok()) << session.status();
  for (const auto& [batch, seq] : {std::pair{1, 7}, {2, 16}, {1, 1}, {3, 7}}) {
    const Tensors inputs = {{"x", Ramp({batch, seq, 32})}};
    const auto want = RunOnOnnxRuntime(bytes, inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    const auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    const Tensor& y = got->at("y");
    ASSERT_EQ(y.dims(), want->at("y").dims());
    for (int64_t i = 0; i < y.elements(); ++i) {
      ASSERT_NEAR(y.at<float>(i), want->at("y").at<float>(i), 2e-3) << batch << "x" << seq;
    }
  }
}

TEST(FreeDimensions, ThePlanIsThatOfTheLastSizes) {
  auto session = Session::LoadBytes(BytesOfText(kTwoMeans));
  ASSERT_TRUE(session.ok()) << session.status();
  auto plan = nlohmann::json::parse(session->PlanJson());
  EXPECT_THAT(plan["summary"]["free_dimensions"], testing::SizeIs(testing::Ge(1)));
  EXPECT_EQ(session->PlanLine(), "M1: planned at the first run, for the sizes of its arrays");
  EXPECT_THAT(session->PlanText(), HasSubstr("\n  free dimensions: n"));
  EXPECT_THAT(session->PlanText(), HasSubstr("to plan before a run, bind them: --dim n="));
  ASSERT_TRUE(session->Run(MeansInputs(3, 2)).ok());
  plan = nlohmann::json::parse(session->PlanJson());
  EXPECT_EQ(plan["summary"]["engine_segments"], 1);
  EXPECT_EQ(plan["summary"]["free_dimensions"], nlohmann::json::array());
  EXPECT_THAT(session->PlanLine(), testing::Not(HasSubstr("\n")));
  std::string events;
  ASSERT_TRUE(session->RunTraced(MeansInputs(3, 2), &events).ok());
  EXPECT_THAT(events, HasSubstr("engine 0"));
}

// The sum of the times grows only if a program is made.
TEST(FreeDimensions, TheLastPlansAreKept) {
  auto session = Session::LoadBytes(BytesOfText(kTwoMeans), {.max_plans = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto makes_one = [&](int64_t rows) {
    const double before = session->times().compile;
    EXPECT_TRUE(session->Run(MeansInputs(rows, 1)).ok());
    return session->times().compile > before;
  };
  EXPECT_TRUE(makes_one(1));
  EXPECT_TRUE(makes_one(2));
  EXPECT_FALSE(makes_one(1));
  EXPECT_TRUE(makes_one(3)) << "2 was used longest ago";
  EXPECT_FALSE(makes_one(1));
  EXPECT_TRUE(makes_one(2));
  EXPECT_THAT(Session::LoadBytes(BytesOfText(kTwoMeans), {.max_plans = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("max_plans 0: want 1 to")));
}

TEST(FreeDimensions, RunFromManyThreadsWithDifferentSizes) {
  auto session = Session::LoadBytes(BytesOfText(kTwoMeans), {.max_plans = 3, .threads = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const Tensors inputs = MeansInputs(1 + (i * 3 + t) % 5, 1 + t % 2, static_cast<float>(t));
        const auto got = session->Run(inputs);
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectMeans(inputs, *got);
        EXPECT_GT(session->times().load, 0);
        EXPECT_FALSE(session->PlanLine().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(FreeDimensions, ALimitOfMemoryDropsTheOldestPlan) {
  // Too little for two plans of large inputs, enough for one.
  const auto load = [](int64_t limit) {
    return Session::LoadBytes(BytesOfText(kTwoMeans), {.memory_limit = limit});
  };
  int64_t least = 4096;
  while (!load(least)->Run(MeansInputs(64, 64)).ok()) {
    least += 4096;
    ASSERT_LT(least, 1 << 24) << "no limit is enough for one plan";
  }
  auto session = load(least);
  for (int64_t columns : {64, 32, 64, 32}) {
    const Tensors inputs = MeansInputs(64, columns);
    const auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectMeans(inputs, *got);
  }
  EXPECT_THAT(session->Run(MeansInputs(640, 640)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory limit")));
}

TEST(FreeDimensions, WrongArraysAreNamedBeforeAPlanIsMade) {
  auto session = Session::LoadBytes(BytesOfText(kTwoMeans));
  ASSERT_TRUE(session.ok()) << session.status();
  const auto refused = [&](const Tensors& inputs, const std::string& told) {
    EXPECT_THAT(session->Run(inputs),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(told)));
  };
  const Tensor x = Ramp({3, 4}), z = Ramp({3, 2});
  refused({{"x", x}}, "input 'z': missing; give an array for it");
  refused({{"x", Ramp({3, 5})}, {"z", z}}, "input 'x': want float32 (n)x4, got float32 3x5");
  refused({{"x", Ramp({4})}, {"z", z}}, "input 'x': want float32 (n)x4, got float32 4");
  refused({{"x", Tensor::Int64s({1, 4}, {1, 2, 3, 4})}, {"z", z}}, "got int64 1x4");
  refused({{"x", x}, {"z", z}, {"q", z}}, "input 'q': the model has no such input; it has: x, z");
  EXPECT_EQ(session->times().compile, 0);
}

TEST(FreeDimensions, ADimensionCanBeBoundAndTheOthersFree) {
  auto session = Session::LoadBytes(BytesOfText(kTwoMeans), {.dims = {{"n", 3}}});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->inputs()[0].dims, ElementsAre(3, 4));
  EXPECT_TRUE(session->Run(MeansInputs(3, 6)).ok());
  EXPECT_THAT(session->Run(MeansInputs(2, 6)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want float32 3x4")));
}

TEST(FreeDimensions, ARankMayBeFreeToo) {
  auto session = Session::LoadBytes(BytesOfText("(float[] x) => (float[] y) { y = Relu(x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{2, 3}, {5}, {1, 2, 2}}) {
    const auto got = session->Run({{"x", Ramp(dims)}});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->at("y").dims(), dims);
  }
}

TEST(FreeDimensions, SizesOf0AreSizes) {
  // A declared one is not free, and an array may be empty along a free one.
  auto declared =
      Session::LoadBytes(BytesOfText("(float[0,4] x) => (float[0,4] y) { y = Relu(x) }"));
  ASSERT_TRUE(declared.ok()) << declared.status();
  EXPECT_THAT(declared->inputs()[0].dims, ElementsAre(0, 4));
  EXPECT_TRUE(declared->Run({{"x", Tensor::Zeros(DataType::kFloat, {0, 4})}}).ok());
  EXPECT_THAT(declared->Run({{"x", Ramp({3, 4})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want float32 0x4")));
  auto free = Session::LoadBytes(BytesOfText("(float[n,4] x) => (float[n,4] y) { y = Relu(x) }"));
  ASSERT_TRUE(free.ok()) << free.status();
  const auto got = free->Run({{"x", Tensor::Zeros(DataType::kFloat, {0, 4})}});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(got->at("y").dims(), ElementsAre(0, 4));
}

// What data decides is decided in each run, not in a plan.
TEST(FreeDimensions, SizesInsideMayDependOnData) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[n] x) => (int64[1,k] y, float[n] r) { y = NonZero(x) r = Relu(x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  for (const std::vector<float>& values : {std::vector<float>{0, 1, 2}, {0, 0, 0}, {3, 1, 2}}) {
    const auto got = session->Run({{"x", Tensor::Floats({3}, values)}});
    ASSERT_TRUE(got.ok()) << got.status();
    const auto nonzero =
        std::count_if(values.begin(), values.end(), [](float v) { return v != 0; });
    EXPECT_THAT(got->at("y").dims(), ElementsAre(1, nonzero));
  }
}

TEST(FreeDimensions, HazardsAreThoseOfTheSizes) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[n] x) => (float[n] y) { s = Mul(x, x) y = Relu(s) }"), {.hazards = true});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto none = session->FindHazards({{"x", Tensor::Floats({2}, {1, 2})}});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(*none, testing::IsEmpty());
  const auto some = session->FindHazards({{"x", Tensor::Floats({3}, {1, 2, 1000})}});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_THAT(*some, testing::Not(testing::IsEmpty()));
}

TEST(FreeDimensions, ValuesOfOtherKindsPass) {
  auto session =
      Session::LoadBytes(BytesOfText("(seq(float[N]) s, float[m] x) => (seq(float[M]) t) { y = "
                                     "Relu(x) t = SequenceInsert(s, y) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  for (int64_t size : {2, 3}) {
    const auto got = session->RunValues({{"s", OnnxValue::Sequence({})}, {"x", Ramp({size})}});
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->at("t").elements.size(), 1);
    EXPECT_THAT(got->at("t").elements[0].tensor.dims(), ElementsAre(size));
  }
}

}  // namespace
}  // namespace anemone
