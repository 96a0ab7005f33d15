#include "base/model_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "tests/status_matchers.h"

namespace anemone {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

TEST(ModelLimits, AreTheDefaultsOutsideOfAnObject) {
  for (const ModelLimitRow& row : AllModelLimits()) {
    EXPECT_EQ(ValueOf(row.limit), row.value);
    EXPECT_GE(row.most, row.value);
  }
}

TEST(ModelLimits, OfAThreadAreThoseOfTheOutermostObject) {
  {
    const ModelLimits outer({{"nodes", 7}});
    const ModelLimits inner({{"nodes", 8}, {"nesting", 3}});
    EXPECT_EQ(ValueOf(ModelLimit::kNodes), 7);
    EXPECT_EQ(ValueOf(ModelLimit::kNesting), 200);
    std::thread([] { EXPECT_EQ(ValueOf(ModelLimit::kNodes), 10'000'000); }).join();
  }
  EXPECT_EQ(ValueOf(ModelLimit::kNodes), 10'000'000);
}

TEST(ModelLimits, ErrorsNameTheOptionWhereItHelps) {
  EXPECT_THAT(
      OverLimit(ModelLimit::kNodes, "the model has"),
      StatusIs(StatusCode::kResourceExhausted,
               "the model has more than 10000000 nodes; raise the limit (--limit nodes=N)"));
  EXPECT_THAT(OverLimit(ModelLimit::kModelBytes, "it has", "cut it"),
              StatusIs(StatusCode::kResourceExhausted, "it has more than 2.0 GiB; cut it"));
  const ModelLimits limits({{"model-bytes", 2048}});
  EXPECT_THAT(
      OverLimit(ModelLimit::kModelBytes, "it has", "cut it"),
      StatusIs(StatusCode::kResourceExhausted,
               "it has more than 2.0 KiB; cut it, or raise the limit (--limit model-bytes=N)"));
}

TEST(ModelLimits, AreReadWithTheSuffixesOfBytes) {
  std::map<std::string, int64_t> limits;
  ASSERT_THAT(ReadModelLimits("nodes=12,tensor-bytes=1.5 KiB", limits), IsOk());
  ASSERT_THAT(ReadModelLimits("model-bytes=2KB", limits), IsOk());
  EXPECT_EQ(limits, (std::map<std::string, int64_t>{
                        {"nodes", 12}, {"tensor-bytes", 1536}, {"model-bytes", 2000}}));
}

TEST(ModelLimits, OfNoMeaningAreErrors) {
  const struct {
    const char *text, *want;
  } kCases[] = {{"", "there is no limit ''; want NAME=VALUE with one of model-bytes, "},
                {"node=1", "there is no limit 'node'; did you mean nodes"},
                {"nodes", "nodes: want a number, got ''"},
                {"nodes=0", "nodes: want 1 to 2147483647 nodes, got 0"},
                {"nodes=-1", "nodes: want 1 to"},
                {"nodes=1K", "nodes: want a number, got '1K'"},
                {"nodes=99999999999", "nodes: want 1 to"},
                {"tensor-bytes=0", "tensor-bytes: want 1 to"},
                {"tensor-bytes=much", "want a number of bytes, as 512M or 2GB, got 'much'"},
                {"model-bytes=3G", "model-bytes: want 1 to 2.0 GiB"},
                {"nesting=1000", "nesting: want 1 to 600 messages"},
                {"nodes=1,nodes=2", "'nodes' is given twice"},
                {"nodes=1,", "there is no limit ''"}};
  for (const auto& [text, want] : kCases) {
    std::map<std::string, int64_t> limits;
    EXPECT_THAT(ReadModelLimits(text, limits),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(want)))
        << text;
  }
  EXPECT_THAT(CheckModelLimits({{"nodes", 0}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("nodes")));
  EXPECT_THAT(CheckModelLimits({{"knots", 1}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("knots")));
}

}  // namespace
}  // namespace anemone
