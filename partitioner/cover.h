// partitioner/cover.h: the choice among lowerings, node by node.
#ifndef ANEMONE_PARTITIONER_COVER_H_
#define ANEMONE_PARTITIONER_COVER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/lowering.h"
#include "partitioner/plan.h"

namespace anemone {

// Nodes that one lowering covers, or one node that none took.
struct Cover {
  std::vector<NodeId> nodes;  // the anchor last
  Lowered lowered;            // units, if some lowering wrote any
  bool rewritten = false;
  Verdict verdict;  // accepted, or the reason of the first lowering of the node alone
};

// A pattern that was found, and none of whose forms was taken: its nodes go their own ways.
struct MissedPattern {
  NodeId anchor = kNone;
  const char* pattern = "";
  Verdict verdict;  // of the first form
};

// Every node in exactly one cover, in the order of their anchors. Patterns go first, widest first
// in the order of their rows; a pattern whose units the target refuses is as if it were not there,
// but for a line in `missed`.
absl::StatusOr<std::vector<Cover>> ChooseCovers(const GraphView& view, const PlanOptions& options,
                                                std::vector<MissedPattern>& missed);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_COVER_H_
