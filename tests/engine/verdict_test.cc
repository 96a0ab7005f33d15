// Limits and families of rules (engine/tables/rules), and how a Judge uses them.
#include "engine/verdict.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/fp16.h"
#include "engine/warning.h"
#include "math/core/half.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

Judge On(const char* target, Route route = Route::kNetplist) {
  return Judge(**FindTarget(target), route);
}

TEST(Judge, RequiresTheFamilyOfARule) {
  const Verdict refused = On("h13").Requires(rule::kSortFamily);
  EXPECT_FALSE(refused.accepted);
  EXPECT_EQ(refused.rule_id(), "sort-family");
  EXPECT_TRUE(On("h14").Requires(rule::kSortFamily).accepted);
}

// A target without a known family may be of a later one.
TEST(Judge, AcceptsAnUnknownFamilyWithTheStatusUnknown) {
  const Verdict accepted = On("m11").Requires(rule::kSortFamily);
  EXPECT_TRUE(accepted.accepted);
  EXPECT_EQ(accepted.status, Status::kUnknown);
}

TEST(Judge, PredictsForFamiliesAfterTheLastThatWasSeen) {
  EXPECT_EQ(On("h13", Route::kMil).Reject(rule::kCastInteger).status, Status::kMeasured);
  EXPECT_EQ(On("h16", Route::kMil).Reject(rule::kCastInteger).status, Status::kPredicted);
}

TEST(Rule, HasTheNumbersOfItsRow) {
  EXPECT_EQ(rule::kLrnChannelsA13.limit, 16);
  EXPECT_TRUE(rule::kTileFactor.Lists(8));
  EXPECT_FALSE(rule::kTileFactor.Lists(5));
  EXPECT_EQ(warning::kFanIn.limit, 12);
}

TEST(Rule, HasFamiliesByOperation) {
  EXPECT_EQ(rule::kNeuronType.FamilyOf("Sin"), rule::kOperationFamily.FamilyOf("global_argmax"));
  EXPECT_LT(rule::kNeuronType.FamilyOf("Erf"), rule::kNeuronType.FamilyOf("Sin"));
  EXPECT_EQ(rule::kNeuronType.FamilyOf("ReLU"), std::nullopt);
}

TEST(Fp16, LimitsAreThoseOfHalf) {
  using math::Half;
  EXPECT_EQ(math::ToFloat(math::kHalfMax), fp16::kLargest);
  EXPECT_EQ(math::ToFloat(Half{0xfbff}), fp16::kLowest);
  EXPECT_EQ(math::ToFloat(Half{0x0400}), fp16::kSmallestNormal);
  EXPECT_EQ(math::ToFloat(Half{0x0001}), fp16::kSmallest);
  const auto integer = static_cast<float>(fp16::kLargestExactInteger);
  EXPECT_EQ(math::RoundToHalf(integer - 1), integer - 1);
  EXPECT_NE(math::RoundToHalf(integer + 1), integer + 1);
  EXPECT_EQ(math::RoundToHalf(1 + fp16::kRoundingError), 1);  // a tie
}

}  // namespace
}  // namespace anemone
