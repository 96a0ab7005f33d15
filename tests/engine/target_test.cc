#include "engine/target.h"

#include <gmock/gmock.h>

#include "engine/target_names.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

const Target& Get(const char* name) { return **FindTarget(name); }

// The only place that counts them.
TEST(Target, ThereAreTwentyEight) { EXPECT_EQ(AllTargets().size(), 28); }

TEST(Target, IsFoundByNameAndProductInAnyCase) {
  EXPECT_EQ(Get("h13").name(), "H13");
  EXPECT_EQ(Get("H13G").name(), "H13g");
  EXPECT_EQ(Get("M1-Pro").name(), "H13g");
  EXPECT_EQ(Get("m1").name(), "H13");
  EXPECT_EQ(Get("a15").name(), "H15");
  EXPECT_EQ(Get("m5-max").name(), "H17s");
  for (const char* written : {"M1 Pro", "m1pro", "m1_pro", " M1-Pro "}) {
    EXPECT_EQ(Get(written).name(), "H13g") << written;
  }
}

TEST(Target, AWrongNameListsNearOnes) {
  EXPECT_THAT(FindTarget("m1prp"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("m1-pro")));
}

TEST(Target, ALabelSaysWhatIsKnown) {
  EXPECT_EQ(TargetLabel(Get("h13")), "M1");
  EXPECT_EQ(TargetLabel(Get("h13g")), "M1 Pro/Max/Ultra");
  EXPECT_EQ(TargetLabel(Get("a11")), "A11");
  EXPECT_EQ(TargetLabel(Get("h16s")), "H16s (unreleased code name)");
  EXPECT_EQ(TargetLabel(Get("m9")), "M9 (unreleased code name, limits not published)");
  EXPECT_EQ(TargetLabel(Get("u1")), "U1 (compiler profile, not a chip, limits not published)");
}

TEST(Target, CarriesTheTablesLimits) {
  EXPECT_EQ(Get("h13").limit(Limit::kMaxTensorW)->value, 16384);
  EXPECT_EQ(Get("h13").limit(Limit::kMaxTensorW)->status, Status::kMeasured);
  EXPECT_EQ(Get("h16").limit(Limit::kMaxTensorW)->value, 65536);
  EXPECT_EQ(Get("h13").limit(Limit::kMaxKernelWFp16Large)->value, 13);
  EXPECT_EQ(Get("u1").limit(Limit::kMaxTensorC), std::nullopt);  // not published
}

TEST(Target, CarriesTheCapabilityBytes) {
  EXPECT_FALSE(Get("h12").Has(Cap::kSoftmax)->value);
  EXPECT_TRUE(Get("h13").Has(Cap::kSoftmax)->value);
  EXPECT_FALSE(Get("h13").Has(Cap::kTextureEngine)->value);
  EXPECT_TRUE(Get("h14").Has(Cap::kTextureEngine)->value);
}

TEST(Target, AFamilyMayBeUnknown) {
  EXPECT_EQ(Get("h13").family_index(), 2);
  EXPECT_EQ(Get("m11").family_index(), std::nullopt);
  EXPECT_FALSE(Get("h12").mil_route());
}

}  // namespace
}  // namespace anemone
