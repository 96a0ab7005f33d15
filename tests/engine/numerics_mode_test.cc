#include "engine/numerics_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

using testing::HasSubstr;

TEST(NumericsMode, EveryOptionOfEveryRuleCanBeTaken) {
  const Target& target = **FindTarget("h13");
  for (const math::NumericsRule& rule : math::NumericsRules()) {
    for (size_t i = 0; i < rule.options.size(); ++i) {
      const auto mode = NumericsMode::Parse(absl::StrCat("exact,", rule.id, "=", rule.options[i]));
      ASSERT_TRUE(mode.ok()) << mode.status();
      EXPECT_TRUE(mode->is_exact());
      EXPECT_EQ(rule.get(mode->On(target)), i) << rule.id;
    }
  }
}

TEST(NumericsMode, OthersStayAsTheFamilyHasThem) {
  const auto mode = NumericsMode::Parse("exact,mac-tile=none,red-sum=narrow");
  ASSERT_TRUE(mode.ok()) << mode.status();
  for (const char* name : {"h13", "h16"}) {
    const Target& target = **FindTarget(name);
    const math::Numerics numerics = mode->On(target), usual = math::NumericsOf(target.family());
    for (const math::NumericsRule& rule : math::NumericsRules()) {
      const std::string id = rule.id;
      if (id != "mac-tile" && id != "red-sum") {
        EXPECT_EQ(rule.get(numerics), rule.get(usual)) << id;
      }
    }
    EXPECT_EQ(numerics.mac_tile, math::MacTile::kNone);
    EXPECT_EQ(numerics.red_sum, math::RedSum::kNarrow);
  }
}

TEST(NumericsMode, WhatIsWrongIsNamedWithWhatThereIs) {
  const auto told = [](const char* text) {
    return std::string(NumericsMode::Parse(text).status().message());
  };
  EXPECT_THAT(told("rough"), HasSubstr("want fast or exact"));
  EXPECT_THAT(told("fast,mac-tile=none"), HasSubstr("want fast or exact"));
  EXPECT_THAT(told("exact,"), HasSubstr("mac-tile"));
  EXPECT_THAT(told("exact,mac-tiles=none"), HasSubstr("mac-tile"));
  EXPECT_THAT(told("exact,mac-tile"), HasSubstr("mac-tile=align12|"));
  EXPECT_THAT(told("exact,mac-tile=off"), HasSubstr("none"));
  EXPECT_THAT(told("exact,mac-tile=none,mac-tile=align12"), HasSubstr("mac-tile once"));
}

}  // namespace
}  // namespace anemone
