// Session: small models from load to result, and many threads at once.
#include "anemone/session.h"

#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "anemone/check.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "importer/importer.h"
#include "partitioner/planner.h"
#include "provider/loaded_model.h"
#include "provider/settings.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

constexpr char kThreePieces[] =
    "(float[1,2,4,4] x) => (float[1,2,2,2] y, float[1,2,4,4] a) { a = Relu(x) "
    "b = MaxPool<kernel_shape = [2,2], strides = [2,2]>(a) y = Sigmoid(b) }";

// Sigmoid(max over 2x2 of relu(x)), with the accuracy of fp16.
void ExpectPieces(const Tensor& x, const std::map<std::string, Tensor>& got) {
  const Tensor& y = got.at("y");
  ASSERT_EQ(y.dims(), (std::vector<int64_t>{1, 2, 2, 2}));
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 4; ++i) {
      float best = 0;
      for (int j = 0; j < 4; ++j) {
        int h = i / 2 * 2 + j / 2, w = i % 2 * 2 + j % 2;
        best = std::max(best, x.at<float>(c * 16 + h * 4 + w));
      }
      EXPECT_NEAR(y.at<float>(c * 4 + i), 1 / (1 + std::exp(-best)), 1e-3);
    }
  }
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(got.at("a").at<float>(i), std::max(0.0f, x.at<float>(i)));
  }
}

TEST(Session, RunsOneEngineSegment) {
  auto session = Session::LoadBytes(BytesOfText(kThreePieces));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->Summary().engine_segments, 1);
  EXPECT_EQ(session->Summary().cpu_segments, 0);
  Tensor x = Ramp({1, 2, 4, 4});
  auto got = session->Run({{"x", x}});
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectPieces(x, *got);
}

TEST(Session, CrossesToTheCpuAndBack) {
  auto session = Session::LoadBytes(BytesOfText(kThreePieces), {.policy = "refuse:Pooling"});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->Summary().engine_segments, 2);
  EXPECT_EQ(session->Summary().cpu_segments, 1);
  Tensor x = Ramp({1, 2, 4, 4});
  auto got = session->Run({{"x", x}});
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectPieces(x, *got);
}

TEST(Session, RunsFromManyThreads) {
  auto session =
      Session::LoadBytes(BytesOfText(kThreePieces), {.policy = "refuse:Pooling", .threads = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Tensor x = Ramp({1, 2, 4, 4});
      for (int i = 0; i < 20; ++i) {
        auto got = session->Run({{"x", x}});
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectPieces(x, *got);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Session, AnInputGoesStraightToAnOutput) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[2] x) => (float[2] y, float[2] z) { y = Identity(x) z = Relu(x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  auto got = session->Run({{"x", Tensor::Floats({2}, {-1, 2})}});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("y").at<float>(0), -1);
  EXPECT_EQ(got->at("z").at<float>(1), 2);
}

TEST(Session, ConstantOutputsAreThere) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[2] x) => (float[2] y, float[2] z) <float[2] c = {3, 4}> "
                  "{ y = Add(c, c) z = Relu(x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  auto got = session->Run({{"x", Tensor::Floats({2}, {-1, 2})}});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->at("y").at<float>(1), 8);
}

using testing::ElementsAre;

std::vector<float> FloatsOf(const OnnxValue& value) {
  EXPECT_EQ(value.kind, OnnxValue::Kind::kTensor);
  const auto data = value.tensor.data<float>();
  return {data.begin(), data.end()};
}

constexpr char kInsert[] =
    "(seq(float[N]) s, float[2] x) => (seq(float[M]) t, seq(float[N]) s, int64 n) "
    "{ y = Relu(x) t = SequenceInsert(s, y) n = SequenceLength(s) }";

TEST(Session, SequencesGoInAndComeOut) {
  auto session = Session::LoadBytes(BytesOfText(kInsert));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->Summary().engine_segments, 1);
  EXPECT_EQ(session->inputs()[0].kind, PortKind::kSequence);
  EXPECT_EQ(session->inputs()[0].type, DataType::kFloat);
  EXPECT_EQ(session->inputs()[0].type_text, "sequence(float32)");
  const Tensor x = Tensor::Floats({2}, {-1, 2});
  const Tensor three = Tensor::Floats({3}, {3, 4, 5});
  for (const std::vector<OnnxValue>& s :
       {std::vector<OnnxValue>{}, {three}, {three, three}, std::vector<OnnxValue>{}}) {
    auto got = session->RunValues({{"s", OnnxValue::Sequence(s)}, {"x", x}});
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->at("t").elements.size(), s.size() + 1);
    EXPECT_THAT(FloatsOf(got->at("t").elements.back()), ElementsAre(0, 2));
    EXPECT_EQ(got->at("s").elements.size(), s.size());
    EXPECT_EQ(got->at("n").tensor.at<int64_t>(0), static_cast<int64_t>(s.size()));
  }
}

TEST(Session, WhatIsNoTensorIsToldOf) {
  auto session = Session::LoadBytes(BytesOfText(kInsert));
  ASSERT_TRUE(session.ok()) << session.status();
  const Tensor x = Tensor::Floats({2}, {-1, 2});
  EXPECT_THAT(
      session->Run({{"s", x}, {"x", x}}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("output 't': sequence(float32) is not a tensor; use RunValues()")));
  const auto refused = [&](const OnnxValue& s) { return session->RunValues({{"s", s}, {"x", x}}); };
  EXPECT_THAT(refused(x), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("want sequence(float32), got float32 2; give")));
  EXPECT_THAT(refused(OnnxValue::Sequence({Tensor::Int64s({1}, {1})})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got sequence(int64 1)")));
  EXPECT_THAT(refused(OnnxValue()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got nothing")));
}

TEST(Session, AnOptionalMayHoldNothing) {
  auto session =
      Session::LoadBytes(BytesOfText("(optional(float[2]) x) => (bool has, optional(float[2]) x) "
                                     "{ has = OptionalHasElement(x) }"));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->inputs()[0].kind, PortKind::kOptional);
  for (const bool has : {false, true, false}) {
    const OnnxValue x = has ? OnnxValue(Tensor::Floats({2}, {1, 2})) : OnnxValue();
    auto got = session->RunValues({{"x", x}});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->at("has").tensor.at<bool>(0), has);
    EXPECT_EQ(got->at("x").kind, x.kind);
  }
}

TEST(Session, WrongInputsAreNamed) {
  auto session = Session::LoadBytes(BytesOfText(kThreePieces));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->Run({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input 'x': missing")));
  EXPECT_THAT(session->Run({{"x", Ramp({1, 2, 4, 5})}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want float32 1x2x4x4, got float32 1x2x4x5")));
  EXPECT_THAT(session->Run({{"x", Ramp({1, 2, 4, 4})}, {"q", Ramp({1})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no such input")));
}

TEST(Session, WrongOptionsAreNamed) {
  EXPECT_THAT(Session::LoadBytes(BytesOfText(kThreePieces), {.target = "h99"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("near")));
  for (const char* mode : {"rough", "", "fast,mac-tile=none", "exactly"}) {
    EXPECT_THAT(Session::LoadBytes(BytesOfText(kThreePieces), {.numerics = mode}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want fast or exact")));
  }
  EXPECT_THAT(Session::LoadBytes(BytesOfText(kThreePieces), {.route = "metal"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want netplist or mil")));
}

TEST(Session, SizesThatNoDimensionHasAreRefused) {
  const std::string model = BytesOfText("(float[n,4] x) => (float[n,4] y) { y = Relu(x) }");
  const auto refused = [&](const Settings& settings, const char* text) {
    EXPECT_THAT(Session::LoadBytes(model, settings),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
    EXPECT_THAT(CheckBytes(model, settings),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refused({.shapes = {{"x", {-4, 4}}}},
          "shapes 'x': want sizes of at least 0, or -1 for what the model declares, got -4");
  refused({.dims = {{"n", -1}}}, "dims 'n': want sizes of at least 0, got -1");
  refused({.buckets = {{"n", {8, -2}}}}, "buckets 'n': want sizes of at least 1, got -2");
}

TEST(Session, ADimensionIsBoundAtLoad) {
  auto bound = Session::LoadBytes(BytesOfText("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"),
                                  {.dims = {{"N", 3}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->inputs()[0].dims, (std::vector<int64_t>{3, 4}));
}

TEST(Session, AnEmptyBatchRunsOnTheCpu) {
  auto session = Session::LoadBytes(
      BytesOfText("(float[N,3,4] x) => (float[A,B,C] y, float[D,E] z) {"
                  " y = Transpose<perm = [0,2,1]>(x) s = Constant<value = int64[2] {4, 0}>()"
                  " z = Reshape<allowzero = 1>(x, s) }"),
      {.dims = {{"N", 0}}});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->Summary().engine_segments, 0);
  auto got = session->Run({{"x", Tensor::Zeros(DataType::kFloat, {0, 3, 4})}});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT(got->at("y").dims(), ElementsAre(0, 4, 3));
  EXPECT_THAT(got->at("z").dims(), ElementsAre(4, 0));
}

// Compress makes fewer rows than the model declares. The segment behind it runs without ONNX
// Runtime, and must not read the rows that are missing.
TEST(Session, AValueThatIsNotAsDeclaredIsAnErrorForASegmentOfMoves) {
  auto session = Session::LoadBytes(
      BytesOfText("(int64[8,4] x, bool[8] keep, float[8,4] f) => (int64[8,1] y) <int64[8,4] c> {"
                  "  c = Compress<axis = 0>(x, keep) sum = ReduceSum<keepdims = 0>(c)"
                  "  s = Cast<to = 1>(sum) lo = Constant<value_float = -1.0>()"
                  "  hi = Constant<value_float = 1.0>() t = Clip(s, lo, hi) a = Add(f, t)"
                  "  b = Sigmoid(a) i = ArgMax<axis = 1>(b) y = GatherElements<axis = 1>(c, i) }"),
      {});
  ASSERT_TRUE(session.ok()) << session.status();
  Tensor keep = Tensor::Zeros(DataType::kBool, {8});
  keep.mutable_data<uint8_t>()[5] = 1;
  EXPECT_THAT(session->Run({{"x", Tensor::Zeros(DataType::kInt64, {8, 4})},
                            {"keep", keep},
                            {"f", Tensor::Zeros(DataType::kFloat, {8, 4})}}),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("value 'c': made as int64 1x4, planned as int64 8x4")));
}

TEST(Session, TracesSegmentsCrossingsAndUnits) {
  auto session = Session::LoadBytes(BytesOfText(kThreePieces), {.policy = "refuse:Pooling"});
  ASSERT_TRUE(session.ok()) << session.status();
  std::string events;
  ASSERT_TRUE(session->RunTraced({{"x", Ramp({1, 2, 4, 4})}}, &events).ok());
  nlohmann::json trace = nlohmann::json::parse("[" + events + "]");
  std::map<std::string, int> count;
  for (const auto& event : trace) ++count[event["cat"]];
  EXPECT_EQ(count["segment"], 3);
  EXPECT_GE(count["unit"], 2);
  EXPECT_GE(count["crossing"], 3);
}

TEST(Session, AMemoryLimitRefusesAProgramThatNeedsMore) {
  for (const char* policy : {"maximal", "cpu"}) {
    SCOPED_TRACE(policy);
    EXPECT_THAT(
        Session::LoadBytes(BytesOfText(kThreePieces), {.policy = policy, .memory_limit = 100}),
        StatusIs(absl::StatusCode::kResourceExhausted,
                 HasSubstr("the memory limit is 100 B; raise the limit")));
    EXPECT_THAT(
        Session::LoadBytes(BytesOfText(kThreePieces), {.policy = policy, .memory_limit = 1 << 20}),
        IsOk());
  }
  EXPECT_THAT(Session::LoadBytes(BytesOfText(kThreePieces), {.memory_limit = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("memory_limit -1")));
}

TEST(LoadedModel, AskingAgainPlansAgainAfterAnError) {
  int calls = 0;
  LoadedModel model;
  model.plan_again = [&]() -> absl::StatusOr<Planned> {
    if (++calls == 1) return absl::DeadlineExceededError("time limit of 1 s reached");
    ANEMONE_ASSIGN_OR_RETURN(Model imported, ImportBytes(BytesOfText(kThreePieces), "", {}));
    ANEMONE_ASSIGN_OR_RETURN(const PlanOptions options, PlanOptionsOf({}));
    ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(imported, options));
    return Planned{std::move(imported), std::move(plan)};
  };
  EXPECT_EQ(model.PlanText(/*every_node=*/false, 80), "time limit of 1 s reached");
  EXPECT_THAT(model.PlanText(/*every_node=*/false, 80), HasSubstr("nothing on the CPU"));
  EXPECT_THAT(model.PlanText(/*every_node=*/false, 80), HasSubstr("nothing on the CPU"));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace anemone
