// Sessions with buckets: which program runs which sizes, use by many threads, and errors. The
// results of realistic models are compared with ONNX Runtime by tests/cli/bucket_test.py.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "absl/strings/str_cat.h"
#include "anemone/check.h"
#include "anemone/session.h"
#include "engine/formats/json.h"
#include "provider/buckets/padding_copy.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

// Rows are independent: y = relu(x) + x along `n`.
constexpr char kRows[] = "(float[n,4] x) => (float[n,4] y) { r = Relu(x) y = Add(r, x) }";
// Means of columns: every row affects the result.
constexpr char kMeans[] =
    "(float[n,4] x) => (float[1,4] y) <int64[1] a = {0}> { y = ReduceMean(x, a) }";

void ExpectRows(const Tensor& x, const Tensor& y) {
  ASSERT_EQ(y.dims(), x.dims());
  for (int64_t i = 0; i < x.elements(); ++i) {
    EXPECT_EQ(y.at<float>(i), std::max(x.at<float>(i), 0.0f) + x.at<float>(i));
  }
}

void ExpectMeans(const Tensor& x, const Tensor& y) {
  ASSERT_EQ(y.dims(), (std::vector<int64_t>{1, 4}));
  for (int64_t c = 0; c < 4; ++c) {
    float sum = 0;
    for (int64_t r = 0; r < x.dims()[0]; ++r) sum += x.at<float>(r * 4 + c);
    EXPECT_NEAR(y.at<float>(c), sum / static_cast<float>(x.dims()[0]), 2e-3);
  }
}

absl::StatusOr<Session> LoadRows(const char* model = kRows) {
  return Session::LoadBytes(BytesOfText(model), {.buckets = {{"n", {8, 2, 4, 4}}}, .threads = 2});
}

TEST(Buckets, TheSmallestThatFitsIsPadded) {
  auto session = LoadRows();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->inputs()[0].dims, ElementsAre(-1, 4));
  EXPECT_EQ(session->times().compile, 0) << "programs are made when they are needed";
  const std::map<int64_t, int64_t> bucket_of = {{1, 2}, {2, 2}, {3, 4}, {5, 8}, {8, 8}};
  for (const auto& [size, bucket] : bucket_of) {
    const Tensor x = Ramp({size, 4});
    auto y = session->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    ExpectRows(x, y->at("y"));
    auto use = session->UseOf({{"x", x}});
    ASSERT_TRUE(use.ok()) << use.status();
    EXPECT_THAT(use->sizes, ElementsAre(Pair("n", size)));
    EXPECT_THAT(use->bucket, ElementsAre(Pair("n", bucket)));
    EXPECT_EQ(use->padded, size != bucket);
    EXPECT_THAT(use->refusal, IsEmpty());
    EXPECT_EQ(session->Summary().engine_segments, 1);
  }
  EXPECT_GT(session->times().compile, 0);
}

TEST(Buckets, WhatMixesRowsGetsItsExactSize) {
  auto session = LoadRows(kMeans);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int64_t size : {1, 2, 3, 5, 6, 7, 8, 3, 1}) {  // more programs than are kept
    const Tensor x = Ramp({size, 4});
    auto y = session->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    ExpectMeans(x, y->at("y"));
    auto use = session->UseOf({{"x", x}});
    ASSERT_TRUE(use.ok()) << use.status();
    EXPECT_THAT(use->bucket, ElementsAre(Pair("n", size)));
    EXPECT_FALSE(use->padded);
    const bool is_bucket = size == 2 || size == 8;
    EXPECT_THAT(use->refusal, is_bucket ? testing::Matcher<std::string>(IsEmpty())
                                        : testing::Matcher<std::string>(HasSubstr("ReduceMean")));
  }
}

TEST(Buckets, RunFromManyThreadsWithDifferentSizes) {
  auto rows = LoadRows();
  auto means = LoadRows(kMeans);
  ASSERT_TRUE(rows.ok() && means.ok());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const Tensor x = Ramp({1 + (i * 3 + t) % 8, 4}, static_cast<float>(t));
        auto y = rows->Run({{"x", x}});
        ASSERT_TRUE(y.ok()) << y.status();
        ExpectRows(x, y->at("y"));
        auto mean = means->Run({{"x", x}});
        ASSERT_TRUE(mean.ok()) << mean.status();
        ExpectMeans(x, mean->at("y"));
        EXPECT_EQ(rows->Summary().cpu_segments, 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Buckets, TracesAndPlansAreThoseOfTheProgram) {
  auto session = LoadRows();
  ASSERT_TRUE(session.ok()) << session.status();
  std::string events;
  const Tensor x = Ramp({3, 4});
  auto y = session->RunTraced({{"x", x}}, &events);
  ASSERT_TRUE(y.ok()) << y.status();
  ExpectRows(x, y->at("y"));
  EXPECT_THAT(events, HasSubstr("engine 0"));
  const auto plans = nlohmann::json::parse(session->PlanJson());
  ASSERT_EQ(plans.size(), 3);
  EXPECT_EQ(plans[1]["bucket"]["n"], 4);
  EXPECT_EQ(plans[1]["padding"]["at"]["n"], 3);
  EXPECT_EQ(plans[1]["padding"]["proven"], true);
  EXPECT_THAT(session->PlanText(), HasSubstr("n=2, n=4, n=8: smaller inputs are padded"));
  EXPECT_THAT(session->PlanLine(), HasSubstr("n=2, n=4, n=8; M1: "));
}

// The programs of all sizes share the limit.
TEST(Buckets, AMemoryLimitHoldsForAllPrograms) {
  for (int64_t limit = 64; limit < 1 << 20; limit += 64) {
    auto session =
        Session::LoadBytes(BytesOfText(kRows), {.buckets = {{"n", {2, 8}}}, .memory_limit = limit});
    ASSERT_TRUE(session.ok()) << session.status();
    if (!session->Run({{"x", Ramp({2, 4})}}).ok()) continue;
    EXPECT_EQ(session->Run({{"x", Ramp({8, 4})}}).status().code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(session->Run({{"x", Ramp({2, 4})}}).ok());
    return;
  }
  ADD_FAILURE() << "no limit is enough for one program";
}

TEST(Buckets, WhatIsWrongIsNamed) {
  const auto load = [](std::map<std::string, std::vector<int64_t>> buckets,
                       std::map<std::string, int64_t> dims = {}) {
    return Session::LoadBytes(BytesOfText(kRows), {.dims = dims, .buckets = buckets}).status();
  };
  EXPECT_THAT(load({{"m", {4}}}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("no input has a free dimension of that name; "
                                                     "there are 'n'")));
  EXPECT_THAT(load({{"n", {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want at least one size")));
  EXPECT_THAT(load({{"n", {4, 0}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want sizes of at least 1")));
  EXPECT_THAT(load({{"n", {4}}}, {{"n", 4}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("drop one of the two")));
  std::vector<int64_t> many(65);
  std::iota(many.begin(), many.end(), 1);
  EXPECT_THAT(load({{"n", many}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("there are at most 64")));
  auto session = LoadRows();
  ASSERT_TRUE(session.ok()) << session.status();
  const auto run = [&](std::map<std::string, Tensor> inputs) {
    return session->Run(inputs).status();
  };
  EXPECT_THAT(run({{"x", Ramp({9, 4})}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input 'x', dimension 0 ('n'): size 9 is above the largest "
                                 "bucket, 8; give a larger one (--bucket n=...,9)")));
  EXPECT_THAT(run({{"x", Ramp({3, 5})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want float32 (n)x4, got")));
  EXPECT_THAT(run({{"x", Ramp({0, 4})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is empty")));
  EXPECT_THAT(run({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("give an array for 'x'")));
  EXPECT_THAT(run({{"x", Ramp({3, 4})}, {"z", Ramp({3, 4})}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no such input")));
  auto bound = Session::LoadBytes(BytesOfText(kRows), {.dims = {{"n", 4}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_THAT(bound->UseOf({}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("without any")));
}

// Two rows become one, so only even numbers of rows are possible.
constexpr char kPairs[] =
    "(float[n,8] x) => (float[m,16] y) <int64[2] s = {-1, 16}> { r = Relu(x) y = Reshape(r, s) }";

TEST(Buckets, ABucketThatTheModelCannotHaveIsNamed) {
  auto session = Session::LoadBytes(BytesOfText(kPairs), {.buckets = {{"n", {5, 8}}}});
  ASSERT_TRUE(session.ok()) << session.status();
  // The exact size runs.
  for (const int64_t rows : {2, 4}) {
    const std::map<std::string, Tensor> inputs = {{"x", Ramp({rows, 8})}};
    auto use = session->UseOf(inputs);
    ASSERT_TRUE(use.ok()) << use.status();
    EXPECT_FALSE(use->padded);
    EXPECT_THAT(use->refusal, StartsWith("n=5: the model cannot have this size"));
    EXPECT_THAT(use->refusal, HasSubstr("sizes that fit: n=4 or n=6"));
    auto y = session->Run(inputs);
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_EQ(y->at("y").dims(), (std::vector<int64_t>{rows / 2, 16}));
  }
  EXPECT_THAT(session->Run({{"x", Ramp({5, 8})}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("n=5: the model cannot have this size"),
                             HasSubstr("sizes that fit: n=4 or n=6"))));
  EXPECT_THAT(session->Run({{"x", Ramp({7, 8})}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("n=7: the model cannot have this size"),
                             HasSubstr("sizes that fit: n=6 or n=8"))));
  auto alone = Session::LoadBytes(BytesOfText(kPairs), {.buckets = {{"n", {5}}}});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_TRUE(alone->Run({{"x", Ramp({4, 8})}}).ok());
  EXPECT_THAT(
      alone->Run({{"x", Ramp({3, 8})}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sizes that fit: n=2 or n=4")));
}

TEST(PaddingCopy, PadsAndCropsEachAxis) {
  const Tensor x = Tensor::Int64s({2, 3}, {1, 2, 3, 4, 5, 6});
  auto padded = PadTensor(x, {3, 5});
  ASSERT_TRUE(padded.ok()) << padded.status();
  EXPECT_THAT(padded->data<int64_t>(), ElementsAre(1, 2, 3, 0, 0, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0));
  auto cropped = CropTensor(*padded, {{{3, 2}}, {{5, 3}}});
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  EXPECT_EQ(cropped->dims(), x.dims());
  EXPECT_THAT(cropped->data<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  // Both stretches are in one axis.
  cropped = CropTensor(padded->Reshaped({15}), {{{3, 2}, {5, 3}}});
  ASSERT_TRUE(cropped.ok()) << cropped.status();
  EXPECT_EQ(cropped->dims(), std::vector<int64_t>{6});
  EXPECT_THAT(cropped->data<int64_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(CropTensor(x, {{{3, 2}}, {{5, 3}}}).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("2x3")));
  auto strings = PadTensor(Tensor::Strings({1}, {"a"}), {2});
  ASSERT_TRUE(strings.ok()) << strings.status();
  EXPECT_THAT(strings->strings(), ElementsAre("a", ""));
}

TEST(PaddingCopy, MasksThatKeepSomething) {
  const Tensor mask = Tensor::Int64s({2, 3}, {1, 0, 0, 0, 0, 1});
  EXPECT_TRUE(Holds({.axis = 1}, mask));
  EXPECT_FALSE(Holds({.axis = 0}, mask));
  EXPECT_FALSE(Holds({.axis = 1, .all = true}, mask));
  EXPECT_TRUE(Holds({.axis = 1, .all = true}, Tensor::Int64s({1, 2}, {3, 1})));
}

}  // namespace
}  // namespace anemone
