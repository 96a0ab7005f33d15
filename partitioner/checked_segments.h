// partitioner/checked_segments.h: the segments of a plan, each with a network that the target
// accepts.
#ifndef ANEMONE_PARTITIONER_CHECKED_SEGMENTS_H_
#define ANEMONE_PARTITIONER_CHECKED_SEGMENTS_H_

#include <vector>

#include "absl/types/span.h"
#include "base/disjoint_sets.h"
#include "partitioner/cover.h"
#include "partitioner/plan.h"

namespace anemone {

// Covers that are placed together, because their nodes share an origin (docs/design.md, Origins).
class CoverGroups {
 public:
  CoverGroups(size_t origins, const Graph& graph, const std::vector<Cover>& covers);

  // The number of the cover's group: equal for covers that are placed together.
  int Find(int cover) { return sets_.Find(cover); }
  // Gives the first refusal of each group to all of its covers.
  void SpreadRefusals(std::vector<Cover>& covers);

 private:
  DisjointSets sets_;
};

// Makes segments, joins the network of each engine segment and asks CheckNetwork. If a unit or a
// port of a network is refused, the covers that it belongs to move to the CPU with that verdict,
// and the segment is cut there. After eight rounds a refusal moves its whole segment, and after
// sixteen rounds everything moves, so that planning takes linear time.
std::vector<Segment> MakeCheckedSegments(const GraphView& view, absl::Span<const int> opset_classes,
                                         const PlanOptions& options, std::vector<Cover>& covers,
                                         CoverGroups& groups);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_CHECKED_SEGMENTS_H_
