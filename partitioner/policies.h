// partitioner/policies.h: what the policies `latency` and `fewest-segments` give to the CPU of what
// the target accepts.
//
// `latency` starts from the plan with the most nodes on the engine and gives up
// - whole segments, and
// - of each connected part of a segment, the nodes from its start up to some node, and those from
//   some node to its end,
// where the CPU needs less time for them than the engine: its units, the transfers that are saved
// or added, and the dispatch of a segment that is gone. So no new segment arises. A change is kept
// only if the estimate of the whole plan falls; the plan of `cpu` is compared last. So the estimate
// is never above those of `max-engine` and `cpu`. A node without a known time on the CPU is never
// given up; on a target without published CPU rates nothing is.
//
// `fewest-segments` gives up segments without multiply-adds. If no segment has any, it keeps the
// one with the most nodes.
//
// Both take time linear in nodes, and nodes that share an origin stay together.
#ifndef ANEMONE_PARTITIONER_POLICIES_H_
#define ANEMONE_PARTITIONER_POLICIES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "partitioner/checked_segments.h"

namespace anemone {

// The rule of nodes that `latency` gives to the CPU.
inline constexpr absl::string_view kLatencyRule = "latency";

// `segments`: those of MakeCheckedSegments(). Covers that are given up get a refusal of the layer
// policy with the times in its message. Returns the segments that result.
std::vector<Segment> ApplyPolicy(const GraphView& view, absl::Span<const int> opset_classes,
                                 const PlanOptions& options, std::vector<Cover>& covers,
                                 CoverGroups& groups, std::vector<Segment> segments);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_POLICIES_H_
