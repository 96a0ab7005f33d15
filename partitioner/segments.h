// partitioner/segments.h: nodes with a placement to segments.
#ifndef ANEMONE_PARTITIONER_SEGMENTS_H_
#define ANEMONE_PARTITIONER_SEGMENTS_H_

#include <vector>

#include "absl/types/span.h"
#include "partitioner/cover.h"
#include "partitioner/plan.h"

namespace anemone {

// Groups the nodes into convex segments of one placement, in an order in which they can run.
// Each node gets a level: that of the latest it reads, one more where the
// placement changes; engine levels are even, CPU levels odd, from -1. Nodes of one level and
// placement are one segment. No path leaves such a set and comes back, for it would have to climb;
// and engine level 2k needs a chain of k changes, so no other grouping has fewer engine segments.
// Within a CPU level, nodes whose opset differs from their producer's go to a later segment;
// `opset_classes` are the graph's (importer/opset/opsets.h).
//
// A cover on the engine stands as a whole, where its anchor does: only the anchor's outputs are
// read outside (cover.cc IsClosed), so no path leaves it and comes back.
std::vector<Segment> MakeSegments(const GraphView& view, absl::Span<const int> opset_classes,
                                  const std::vector<Cover>& covers);

// The value that a node's units are named after: its first output that is not left out.
ValueId NamingOutput(const Node& node);

// Joins the lowered networks of the covers in the segment into `segment.network`, whose ports are
// the segment's inputs and outputs.
void JoinNetwork(const GraphView& view, absl::Span<const Cover* const> covers, Segment& segment);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_SEGMENTS_H_
