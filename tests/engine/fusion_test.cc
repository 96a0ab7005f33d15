// Chains of units that run together.
#include "engine/software/fusion.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/network_builder.h"
#include "kernels/activation/activation.h"

namespace anemone {
namespace {

// By unit: whether only its chain reads it.
std::vector<bool> InnerUnits(const Network& network) {
  std::vector<bool> inner(network.units.size());
  for (const Chain& chain : FuseUnits(network, Views(network, {}), /*fuse=*/true)) {
    for (const Link& link : chain) inner[link.unit] = link.is_inner;
  }
  return inner;
}

TEST(FuseUnits, OnlyTheChainReadsAnInnerUnit) {
  const Dims dims = MakeDims(1, 8, 4, 4), each = MakeDims(1, 8, 1, 1);
  for (const bool is_seen : {false, true}) {
    NetworkBuilder c(**FindTarget("h16"), Route::kNetplist);
    const Operand x = c.AddInput("x", dims), slopes = c.AddInput("slopes", each);
    c.AddOutput("y", PRelu(c, x, slopes));  // Min, Mult, ReLU, Add
    const Operand scaled = {Operand::Source::kUnit, 1};
    if (is_seen) c.AddOutput("scaled", scaled);
    ASSERT_TRUE(c.ok()) << c.status();
    EXPECT_EQ(InnerUnits(c.network()), (std::vector<bool>{true, !is_seen, true, false}));
  }
}

}  // namespace
}  // namespace anemone
