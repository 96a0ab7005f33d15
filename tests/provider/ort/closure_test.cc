#include "provider/ort/closure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Nodes, each with its placement and its inputs.
NodeWeb Web(const std::vector<std::pair<int, std::vector<int>>>& nodes) {
  NodeWeb web;
  for (const auto& [place, producers] : nodes) {
    web.place.push_back(place);
    web.producers.push_back(producers);
    web.readers.emplace_back();
    for (int p : producers) web.readers[p].push_back(web.size() - 1);
  }
  web.is_wanted.resize(nodes.size());
  web.hands_on.resize(nodes.size());
  return web;
}

std::vector<bool> None(const NodeWeb& web) { return std::vector<bool>(web.size()); }

constexpr int kF = kFoldedAway;

TEST(CloseSegment, TakesFoldedNodesBetween) {  // 0 -> 1 -> 2, and 0 -> 2
  const NodeWeb web = Web({{0, {}}, {kF, {0}}, {0, {0, 1}}});
  EXPECT_THAT(CloseSegment(web, 0, None(web)).nodes, ElementsAre(0, 1, 2));
}

TEST(CloseSegment, TakesWhatOnlyItReads) {  // 0 -> 1 -> 2; 3 reads 4's
  NodeWeb web = Web({{kF, {}}, {kF, {0}}, {0, {1}}, {kF, {}}, {0, {3}}, {kOnCpu, {3}}});
  EXPECT_THAT(CloseSegment(web, 0, None(web)).nodes, ElementsAre(0, 1, 2, 4));
  web.is_wanted[0] = true;
  EXPECT_THAT(CloseSegment(web, 0, None(web)).nodes, ElementsAre(1, 2, 4));
}

TEST(CloseSegment, TakesAnIdentityBehindItIfNeedBeNot) {
  NodeWeb web = Web({{0, {}}, {kF, {0}}});
  web.is_wanted[1] = true;
  EXPECT_THAT(CloseSegment(web, 0, None(web)).nodes, ElementsAre(0));
  web.hands_on[1] = true;
  const FusibleSet set = CloseSegment(web, 0, None(web));
  EXPECT_THAT(set.nodes, ElementsAre(0, 1));
  EXPECT_THAT(set.optional, ElementsAre(1));
}

TEST(CloseSegment, TakesAReshapeBehindItWithItsShape) {  // 0 -> 2; 1 (the shape) -> 2
  NodeWeb web = Web({{0, {}}, {kF, {}}, {kF, {0, 1}}});
  web.is_wanted[2] = web.hands_on[2] = true;
  const FusibleSet set = CloseSegment(web, 0, None(web));
  EXPECT_THAT(set.nodes, ElementsAre(0, 1, 2));
  EXPECT_THAT(set.optional, ElementsAre(2));
  web.is_wanted[1] = true;
  EXPECT_THAT(CloseSegment(web, 0, None(web)).nodes, ElementsAre(0));
}

TEST(CloseSegment, TellsWhatHidesAWayOutAndBack) {  // 0 -> 1 (folded) -> 2 (CPU) -> 3
  const NodeWeb web = Web({{0, {}}, {kF, {0}}, {kOnCpu, {1}}, {0, {2}}});
  const FusibleSet set = CloseSegment(web, 0, None(web));
  EXPECT_TRUE(set.blocked);
  EXPECT_THAT(set.hiding, ElementsAre(1));
  EXPECT_THAT(set.nodes, IsEmpty());
}

TEST(CloseSegment, LeavesNodesOfOthers) {
  const NodeWeb web = Web({{0, {}}, {kF, {0}}, {0, {1}}});
  EXPECT_TRUE(CloseSegment(web, 0, {false, true, false}).blocked);
}

TEST(FindRing, SeesTwoSetsThatWaitForEachOther) {  // 0 -> 1, 2 -> 4 (folded) -> 5
  const NodeWeb web = Web({{0, {}}, {2, {0}}, {2, {}}, {kOnCpu, {}}, {kF, {2}}, {0, {4}}});
  FusibleSet a;
  FusibleSet b;
  a.nodes = {0, 5};
  b.nodes = {1, 2};
  const FusibleSet ring = FindRing(web, {a, b});
  EXPECT_TRUE(ring.blocked);
  EXPECT_THAT(ring.hiding, ElementsAre(4));
  EXPECT_THAT(ring.nodes, ElementsAre(0, 1, 4));
  EXPECT_FALSE(FindRing(web, {a}).blocked);
}

}  // namespace
}  // namespace anemone
