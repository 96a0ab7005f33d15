#include "engine/software/code_grids.h"

#include <gtest/gtest.h>

#include <optional>

#include "engine/software/unit_program.h"
#include "kernels/activation/neuron.h"
#include "kernels/lowering.h"
#include "kernels/units/goc.h"

namespace anemone {
namespace {

// What CodeGridOf() finds of round(clamp(x, low, high)) * scale + shift.
std::optional<math::CodeGrid> GridOfSteps(double scale, float low, float high, double shift = 0) {
  NetworkBuilder c(**FindTarget("h16"), Route::kNetplist);
  const Operand x = c.AddInput("x", MakeDims(1, 2, 3, 4));
  const Operand clamped = Activated(c, NeuronType::kClampedReLU, x, low, high);
  const Operand rounded = Activated(c, NeuronType::kRoundNearest, clamped);
  const Operand y = ScaleAndShift(c, rounded, scale, shift);
  UnitProgram program;
  const absl::Status prepared = program.Prepare(c.network());
  EXPECT_TRUE(c.ok() && prepared.ok()) << c.status() << prepared;
  return CodeGridOf(c.network(), program.prepared, y);
}

TEST(CodeGrids, OfStepsOfEightBits) {
  EXPECT_EQ(GridOfSteps(0.5, -128, 127), (math::CodeGrid{0.5, -128}));
  EXPECT_EQ(GridOfSteps(0.5, 0, 255), (math::CodeGrid{0.5, 0}));
  EXPECT_EQ(GridOfSteps(0.5, -255, 0), (math::CodeGrid{0.5, -255}));
  EXPECT_EQ(GridOfSteps(0.5, -129, 127), std::nullopt) << "257 codes";
  EXPECT_EQ(GridOfSteps(0.5, 1, 100), std::nullopt) << "without 0, which is padding";
  EXPECT_EQ(GridOfSteps(0.5, -1.5, 100), std::nullopt) << "the least code is not an integer";
  EXPECT_EQ(GridOfSteps(0.5, -128, 127, 1), std::nullopt) << "shifted";
}

TEST(CodeGrids, HaveAHalfOfTheirOwnForEachCode) {
  EXPECT_NE(GridOfSteps(0x1p-14, -128, 127), std::nullopt);
  EXPECT_EQ(GridOfSteps(0x1p-15, -128, 127), std::nullopt)
      << "the values of the first codes are subnormal";
  EXPECT_NE(GridOfSteps(256, 0, 255), std::nullopt);
  EXPECT_EQ(GridOfSteps(258, 0, 255), std::nullopt) << "the largest value is above 65504";
  EXPECT_EQ(GridOfSteps(512, -128, 10), std::nullopt) << "the least value is below -65504";
}

}  // namespace
}  // namespace anemone
