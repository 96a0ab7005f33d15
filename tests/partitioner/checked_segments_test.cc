// MakeCheckedSegments(): a refusal of a joined network moves only the covers to blame to the CPU.
// The covers are chosen for one target and checked for another, which refuses one of their units.
#include "partitioner/checked_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;

struct Checked {
  std::vector<Cover> covers;
  std::vector<Segment> segments;
};

Checked CheckOn(const Model& model, const char* chosen_for, const char* checked_for) {
  CoverFacts facts(model.graph, /*keeps=*/false, /*loops=*/false);
  std::vector<MissedPattern> missed;
  auto covers = ChooseCovers(facts, {.target = *FindTarget(chosen_for)},
                             std::vector<bool>(model.graph.nodes.size()), missed);
  EXPECT_TRUE(covers.ok()) << covers.status();
  Checked checked{.covers = *std::move(covers)};
  CoverGroups groups(model.origins.size(), model.graph, checked.covers);
  const std::vector<int> classes(model.graph.nodes.size(), 0);
  checked.segments = MakeCheckedSegments(facts.view, classes, {.target = *FindTarget(checked_for)},
                                         checked.covers, groups);
  return checked;
}

std::vector<std::string> PlacesOf(const Model& model, const Checked& checked) {
  std::vector<std::string> places;
  for (const Segment& segment : checked.segments) {
    for (NodeId id : segment.nodes) {
      places.push_back(
          absl::StrCat(model.graph.nodes[id].op_type, " ", PlacementName(segment.placement)));
    }
  }
  return places;
}

TEST(CheckedSegments, ARefusedUnitCutsItsSegment) {
  const Model model = ModelOf(
      "(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Relu(x) b = Softmax(a) y = Sigmoid(b) }");
  const Checked checked = CheckOn(model, "h13", "h12");  // Softmax needs A13
  EXPECT_THAT(PlacesOf(model, checked),
              ElementsAre("Relu engine", "Softmax cpu", "Sigmoid engine"));
  ASSERT_EQ(checked.covers.size(), 3);
  EXPECT_EQ(checked.covers[1].verdict.message, "Softmax is not supported by this ANE architecture");
}

TEST(CheckedSegments, SeveralRefusedUnitsAreCutOutTogether) {
  const Model model = ModelOf(
      "(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Softmax(x) b = Relu(a) c = Softmax(b) y = "
      "Sigmoid(c) }");
  EXPECT_THAT(PlacesOf(model, CheckOn(model, "h13", "h12")),
              ElementsAre("Softmax cpu", "Relu engine", "Softmax cpu", "Sigmoid engine"));
}

TEST(CheckedSegments, ARefusedPortMovesItsReaders) {
  // A wide port that only an element-wise unit reads; its neighbor does not touch it.
  const Model model = ModelOf(
      "(float[1,1,1,16400] x, float[1,4] z) => (float[1,1,1,16400] y, float[1,4] w) { y = Relu(x) "
      "w "
      "= Relu(z) }");
  const Checked checked = CheckOn(model, "h16", "h13");  // h13's widest tensor has 16384 elements
  EXPECT_THAT(PlacesOf(model, checked), ElementsAre("Relu cpu", "Relu engine"));
}

TEST(CheckedSegments, AnAcceptedNetworkStaysWhole) {
  const Model model =
      ModelOf("(float[1,4,8,8] x) => (float[1,4,8,8] y) { a = Relu(x) y = Softmax(a) }");
  EXPECT_THAT(PlacesOf(model, CheckOn(model, "h13", "h16")),
              ElementsAre("Relu engine", "Softmax engine"));
}

}  // namespace
}  // namespace anemone
