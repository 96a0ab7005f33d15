// CheckNetwork: refusals that concern the network as a whole. What a NetworkBuilder calls a
// refusal.
#include "engine/network.h"

#include <gtest/gtest.h>

#include "engine/authored_unit.h"
#include "kernels/lowering.h"

namespace anemone {
namespace {

TEST(CheckNetwork, RefusesAnOutputThatNobodyMakes) {
  const Target& target = **FindTarget("h16");
  NetworkBuilder c(target, Route::kNetplist);
  Operand x = c.AddInput("x", MakeDims(1, 2, 3, 4));
  const Operand y = AddAuthoredUnit(c, *FindUnitKind("Neuron"), {{"Type", "ReLU"}}, {x}, {});
  ASSERT_TRUE(c.ok()) << c.status();
  c.AddOutput("y", y);
  EXPECT_TRUE(CheckNetwork(c.network(), target, Route::kNetplist).verdict.accepted);
  c.AddOutput("z", {Operand::Source::kUnit, 1});
  Verdict verdict = CheckNetwork(c.network(), target, Route::kNetplist).verdict;
  EXPECT_FALSE(verdict.accepted);
  EXPECT_EQ(verdict.message, "InvalidMILProgram");
}

// Units that share parameters are checked once for each shape of their bottoms.
TEST(CheckNetwork, RefusesACopyOfAnAcceptedUnitWithOtherBottoms) {
  const Target& target = **FindTarget("h16");
  NetworkBuilder c(target, Route::kNetplist);
  const Operand small = c.AddInput("x", MakeDims(1, 2, 3, 4));
  const UnitKind& kind = *FindUnitKind("Neuron");
  AddAuthoredUnit(c, kind, {{"Type", "ReLU"}}, {small}, {});
  ASSERT_TRUE(c.ok()) << c.status();
  const auto params = c.network().units[0].params;
  c.AddUnit(kind, params, {small}, {});
  EXPECT_TRUE(CheckNetwork(c.network(), target, Route::kNetplist).verdict.accepted);
  const Operand large = c.AddInput("z", MakeDims(1, 2, 3, 1 << 20));
  c.AddUnit(kind, params, {large}, {});
  c.AddUnit(kind, params, {small}, {});
  const NetworkVerdict checked = CheckNetwork(c.network(), target, Route::kNetplist);
  EXPECT_FALSE(checked.verdict.accepted);
  EXPECT_EQ(checked.unit, 2);
}

// A form without a lowering is an answer. An error stays one, whatever its code.
TEST(NetworkBuilder, ARefusalIsNotAnError) {
  const Target& target = **FindTarget("h16");
  NetworkBuilder refused(target, Route::kNetplist);
  const absl::Status status = refused.NotLowered("an odd form");
  EXPECT_FALSE(status.ok());
  ASSERT_TRUE(refused.refusal().has_value());
  EXPECT_EQ(refused.refusal()->layer, Layer::kCoverage);
  EXPECT_EQ(refused.refusal()->own_rule, "form-not-lowered");
  EXPECT_EQ(refused.refusal()->message, "not lowered: an odd form");

  NetworkBuilder not_constant(target, Route::kNetplist);
  EXPECT_FALSE(absl::Status(not_constant.NotConstant("a kernel")).ok());
  EXPECT_EQ(not_constant.refusal()->own_rule, "form-not-lowered");
  EXPECT_THAT(not_constant.refusal()->own_remedy,
              testing::HasSubstr("an initializer that the model also lists as an input, remove it "
                                 "from the inputs"));

  NetworkBuilder failed(target, Route::kNetplist);
  failed.Fail(absl::UnimplementedError("a real error"));
  const absl::Status later = failed.NotLowered("an odd form");
  EXPECT_FALSE(failed.refusal().has_value());
  EXPECT_EQ(later, absl::UnimplementedError("a real error"));
}

TEST(Route, NamesAreReadBack) {
  for (Route route : {Route::kNetplist, Route::kMil}) {
    EXPECT_EQ(*ParseRoute(RouteName(route)), route);
  }
  EXPECT_EQ(ParseRoute("both").status(), absl::InvalidArgumentError("want netplist or mil"));
}

}  // namespace
}  // namespace anemone
