// CheckNetwork: refusals that concern the network as a whole.
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

}  // namespace
}  // namespace anemone
