#include "engine/software/code_grids.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "engine/software/unit_program.h"
#include "kernels/activation/neuron.h"
#include "kernels/lowering.h"
#include "kernels/pooling/pooling.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"

namespace anemone {
namespace {

using Behind = std::function<Operand(NetworkBuilder&, const Operand&)>;

// What CodeGridOf() finds of round(clamp(x, low, high)) * scale + shift, perhaps behind a unit.
std::optional<math::CodeGrid> GridOfSteps(double scale, float low, float high, double shift = 0,
                                          const Behind& behind = nullptr) {
  NetworkBuilder c(**FindTarget("h16"), Route::kNetplist);
  const Operand x = c.AddInput("x", MakeDims(1, 2, 3, 4));
  const Operand clamped = Activated(c, NeuronType::kClampedReLU, x, low, high);
  const Operand rounded = Activated(c, NeuronType::kRoundNearest, clamped);
  Operand y = ScaleAndShift(c, rounded, scale, shift);
  if (behind) y = behind(c, y);
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

// A maximum of elements is one of them.
TEST(CodeGrids, OfMaximaOfElements) {
  PoolingParams pool = {.h = {.kernel = 2, .stride = 1}, .w = {.kernel = 2, .pad_before = 1}};
  const auto grid = [&] {
    return GridOfSteps(0.5, -128, 127, 0, [&](NetworkBuilder& c, const Operand& y) {
      return c.Add(PoolingUnit(), pool, {y});
    });
  };
  EXPECT_EQ(grid(), (math::CodeGrid{0.5, -128}));
  pool.mode = PoolingMode::kAvg;
  EXPECT_EQ(grid(), std::nullopt);
}

TEST(CodeGrids, OfParts) {
  const auto part = [](NetworkBuilder& c, const Operand& y) {
    return Sliced(c, y, Axis::kW, 1, 2);
  };
  EXPECT_EQ(GridOfSteps(0.5, -128, 127, 0, part), (math::CodeGrid{0.5, -128}));
}

}  // namespace
}  // namespace anemone
