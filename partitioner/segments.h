// partitioner/segments.h: groups placed nodes into segments, and joins the network of a segment.
#ifndef ANEMONE_PARTITIONER_SEGMENTS_H_
#define ANEMONE_PARTITIONER_SEGMENTS_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "partitioner/cover.h"
#include "partitioner/plan.h"

namespace anemone {

// Groups the nodes into convex segments of one placement, in an order in which they can run. Each
// node has a level: the highest level of its producers, plus one for a producer of the other
// placement. Engine levels are even, CPU levels are odd and start at -1. The nodes of one level
// form one segment. The segment is convex, because levels never fall along a path. No grouping has
// fewer engine segments, because level 2k needs a chain of k engine segments.
//
// Within a CPU level, a node whose opset differs from its producer's is in a later segment;
// `opset_classes` has the class of each node (importer/opset/opsets.h). All nodes of a cover on the
// engine have the level of its anchor: only the anchor's outputs are read outside of the cover
// (IsClosed in cover.cc), so the segment stays convex.
std::vector<Segment> MakeSegments(const GraphView& view, absl::Span<const int> opset_classes,
                                  const std::vector<Cover>& covers);

// Calls visit(p) for each node p that makes a value the node reads.
template <class Visit>
void ForEachProducer(const Graph& graph, const Node& node, const Visit& visit) {
  for (const std::vector<ValueId>* list : {&node.inputs, &node.captures}) {
    for (ValueId v : *list) {
      if (v != kNone && graph.values[v].producer != kNone) visit(graph.values[v].producer);
    }
  }
}

// The level of a node without producers, and the level that a producer gives it; a node has the
// highest of these.
inline int LowestLevel(bool on_engine) { return on_engine ? 0 : -1; }
inline int LevelAfter(int level, bool producer_on_engine, bool on_engine) {
  return level + (producer_on_engine == on_engine ? 0 : 1);
}

// The value that a node's units are named after: the node's first output that exists.
ValueId NamingOutput(const Node& node);

// The name of unit `i` of a cover's network in the network of its segment.
std::string UnitName(const GraphView& view, const Cover& cover, size_t i);

// Joins the lowered networks of the covers in the segment into `segment.network`, whose ports are
// the segment's inputs and outputs.
void JoinNetwork(const GraphView& view, absl::Span<const Cover* const> covers, Segment& segment);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_SEGMENTS_H_
