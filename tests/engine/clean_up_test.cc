// CleanUp: layout units of neighboring lowerings that undo each other are removed, and no others.
#include <gtest/gtest.h>

#include "engine/network.h"
#include "kernels/lowering.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// A context over an empty graph, used only to add units.
class CleanUpTest : public testing::Test {
 protected:
  Graph graph_;
  GraphView view_{graph_};
  LowerContext context_{view_, **FindTarget("h13"), Route::kNetplist};

  Operand Input(const Dims& dims) {
    return context_.AddConstant(Tensor::Zeros(DataType::kFloat, {dims.elements()}), dims);
  }
  Network Finish(const Operand& from) {
    Network network = context_.Take().network;
    network.outputs.push_back({"y", from});
    CleanUp(network);
    return network;
  }
};

TEST_F(CleanUpTest, InverseTransposesVanish) {
  Operand x = Input(MakeDims(1, 2, 3, 4));
  Operand swapped = SwapAxes(context_, x, Axis::kC, Axis::kH);
  Network network = Finish(SwapAxes(context_, swapped, Axis::kC, Axis::kH));
  EXPECT_TRUE(network.units.empty());
  EXPECT_EQ(network.outputs[0].from, x);
}

TEST_F(CleanUpTest, OtherTransposesStay) {
  Operand x = Input(MakeDims(1, 2, 3, 4));
  Operand swapped = SwapAxes(context_, x, Axis::kC, Axis::kH);
  Network network = Finish(SwapAxes(context_, swapped, Axis::kC, Axis::kW));
  EXPECT_EQ(network.units.size(), 2);
  EXPECT_EQ(network.DimsOf(network.outputs[0].from), MakeDims(1, 4, 2, 3));
}

TEST_F(CleanUpTest, ViewsOfViewsAreOneAndIdentitiesNone) {
  Operand x = Input(MakeDims(1, 2, 3, 4));
  Operand flat = ReshapeToDims(context_, x, MakeDims(1, 24, 1, 1));
  Network one = Finish(ReshapeToDims(context_, flat, MakeDims(1, 4, 3, 2)));
  EXPECT_EQ(one.units.size(), 1);
}

TEST_F(CleanUpTest, AReshapeThereAndBackVanishes) {
  Operand x = Input(MakeDims(1, 2, 3, 4));
  Operand flat = ReshapeToDims(context_, x, MakeDims(1, 24, 1, 1));
  Network none = Finish(ReshapeToDims(context_, flat, MakeDims(1, 2, 3, 4)));
  EXPECT_TRUE(none.units.empty());
}

TEST_F(CleanUpTest, MovingAxesOfOneElementIsAView) {
  Operand x = Input(MakeDims(1, 1, 3, 4));
  Operand swapped = SwapAxes(context_, x, Axis::kC, Axis::kH);
  Network network = Finish(swapped);
  ASSERT_EQ(network.units.size(), 1);
  EXPECT_STREQ(network.units[0].kind->type, "Reshape");
}

TEST_F(CleanUpTest, ABatchOfOneNeedNotMove) {
  Operand x = Input(MakeDims(1, 2, 3, 4));
  Permutation order = {Axis::kD, Axis::kN, Axis::kH, Axis::kC, Axis::kW};
  Operand y = Permuted(context_, x, order);
  Network network = Finish(y);
  const Unit& unit = network.units.at(0);
  EXPECT_TRUE(unit.kind
                  ->Validate(unit.params.get(), network.BottomsOf(unit), **FindTarget("h13"),
                             Route::kNetplist)
                  .accepted);
}

}  // namespace
}  // namespace anemone
