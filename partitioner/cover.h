// partitioner/cover.h: chooses a lowering for every node, or for a pattern of several nodes.
#ifndef ANEMONE_PARTITIONER_COVER_H_
#define ANEMONE_PARTITIONER_COVER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/lowering.h"
#include "partitioner/plan.h"

namespace anemone {

// The rule of a node that stays on the CPU with all nodes of its bodies.
inline constexpr absl::string_view kBodyOnCpu = "body-on-cpu";

// The nodes that one lowering covers, or one node that no lowering covers.
struct Cover {
  std::vector<NodeId> nodes;  // the anchor last
  Lowered lowered;            // units, if some lowering wrote any
  bool rewritten = false;
  // Accepted, or the reason of the first lowering of the node alone. The rule `fp16-range` goes
  // first.
  Verdict verdict;
};

// A pattern that matched but was refused in all its forms. Its nodes are placed one by one.
struct MissedPattern {
  NodeId anchor = kNone;
  const char* pattern = "";
  Verdict verdict;  // of the first form
};

// The rule of a node whose lowering failed. It is on the CPU, and MakePlan() adds a warning.
inline constexpr char kLoweringFault[] = "lowering-fault";

// Returns covers in the order of their anchors; every node is in exactly one. Patterns are tried
// before single nodes, in the order of their table rows (widest first). A pattern whose units the
// target refuses is skipped and recorded in `missed`. `refused`: by node, whether the policy
// refuses it by its name.
absl::StatusOr<std::vector<Cover>> ChooseCovers(const GraphView& view, const PlanOptions& options,
                                                const std::vector<bool>& refused,
                                                std::vector<MissedPattern>& missed);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_COVER_H_
