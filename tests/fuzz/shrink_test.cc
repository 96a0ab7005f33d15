// Tests that a graph depends only on seed and number, and that it shrinks to a graph with the
// fault.
#include "tests/fuzz/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/fuzz/maker.h"

namespace anemone::fuzz {
namespace {

class ShrinkTest : public testing::Test {
 protected:
  void SetUp() override {
    auto runtime = OrtRuntime::Open({.threads = 1});
    ASSERT_TRUE(runtime.ok()) << runtime.status();
    runtime_ = *runtime;
  }
  FuzzGraph Make(uint64_t number) { return MakeGraph(runtime_, 7, number, {{"h13", "h15"}}).graph; }

  Runtime runtime_;
};

bool Has(const FuzzGraph& graph, const std::string& op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& node) { return node.op_type() == op; });
}

TEST_F(ShrinkTest, AGraphIsMadeOfSeedAndNumberAlone) {
  std::string before;
  for (uint64_t number = 0; number < 40; ++number) {
    const std::string text = TextOf(Make(number));
    EXPECT_EQ(text, TextOf(Make(number)));
    EXPECT_NE(text, before);
    before = text;
  }
}

TEST_F(ShrinkTest, WhatDoesNotMatterGoesAway) {
  int shrunk = 0;
  for (uint64_t number = 0; number < 400 && shrunk < 3; ++number) {
    FuzzGraph graph = Make(number);
    if (!Has(graph, "Transpose") || graph.nodes.size() < 4) continue;
    graph = Shrink(runtime_, graph, [](const FuzzGraph& g) { return Has(g, "Transpose"); });
    ASSERT_EQ(graph.nodes.size(), 1) << TextOf(graph);
    EXPECT_EQ(graph.nodes[0].attribute_size(), 0) << TextOf(graph);
    ASSERT_EQ(graph.leaves.size(), 1) << TextOf(graph);
    for (int64_t dim : graph.leaves[0].value.dims()) EXPECT_LE(dim, 1) << TextOf(graph);
    EXPECT_TRUE(graph.also_outputs.empty());
    EXPECT_EQ(graph.target, "h13");
    ++shrunk;
  }
  EXPECT_EQ(shrunk, 3);
}

TEST_F(ShrinkTest, NeighboursDifferInOnePlace) {
  int neighbours = 0;
  for (uint64_t number = 0; number < 20; ++number) {
    const FuzzGraph graph = Make(number);
    for (const FuzzGraph& other : Neighbours(graph)) {
      ++neighbours;
      EXPECT_NE(TextOf(other), TextOf(graph));
      EXPECT_EQ(other.nodes.size(), graph.nodes.size());
    }
  }
  EXPECT_GT(neighbours, 20);
}

}  // namespace
}  // namespace anemone::fuzz
