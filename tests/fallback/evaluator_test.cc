// ONNX Runtime computes constants for the importer.
#include "fallback/evaluator.h"

#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// three = one + two; strings pass through.
struct Constants {
  Constants() {
    one = b.Constant("one", Tensor::Floats({1}, {1}));
    two = b.Constant("two", Tensor::Floats({1}, {2}));
    three = b.Floats("three", {1});
    word = b.Tensor("word", DataType::kString, {});
    b.Add("Add", {one, two}, {three});
    b.Add("Identity", {b.Constant("hello", Tensor::Strings({}, {"hello"}))}, {word});
  }
  GraphBuilder b;
  ValueId one, two, three, word;
};

TEST(Evaluator, GivesTheWantedInTheirOrder) {
  const Constants c;
  const auto out = MakeEvaluator(Runtime())(c.b.graph, {c.word, c.two, c.three});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->size(), 3);
  EXPECT_THAT((*out)[0].strings(), ElementsAre("hello"));
  EXPECT_EQ((*out)[1].at<float>(0), 2);
  EXPECT_EQ((*out)[2].at<float>(0), 3);
}

TEST(Evaluator, ALargeConstantIsRead) {
  GraphBuilder b;
  const ValueId sum = b.Floats("sum", {});
  Tensor large = Tensor::Zeros(DataType::kFloat, {4096});
  large.mutable_data<float>()[4000] = 6;
  b.Add("ReduceSum", {b.Constant("large", large)}, {sum}, {Int("keepdims", 0)});
  const auto out = MakeEvaluator(Runtime())(b.graph, {sum});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].at<float>(0), 6);
}

TEST(Evaluator, WantsNothingGivesNothing) {
  const auto out = MakeEvaluator(Runtime())(Graph{}, {});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(out->empty());
}

TEST(Evaluator, AFailureIsAStatus) {
  GraphBuilder b;
  const ValueId y = b.Floats("y", {1});
  b.Add("Gather",
        {b.Constant("x", Tensor::Floats({1}, {1})), b.Constant("far", Tensor::Int64s({1}, {7}))},
        {y});
  EXPECT_THAT(MakeEvaluator(Runtime())(b.graph, {y}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("constant node 'Gather_0' (Gather): ONNX Runtime ")));
}

TEST(Evaluator, AValueThatNobodyComputesIsRefused) {
  GraphBuilder b;
  const ValueId y = b.Floats("y", {1});
  EXPECT_THAT(
      MakeEvaluator(Runtime())(b.graph, {y}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want nodes that compute them")));
}

TEST(Evaluator, ASequenceIsRefused) {
  GraphBuilder b;
  const ValueId y = b.Untyped("y");
  b.Add("SequenceEmpty", {}, {y});
  EXPECT_THAT(MakeEvaluator(Runtime())(b.graph, {y}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want a tensor")));
}

}  // namespace
}  // namespace anemone
