// partitioner/cover.h: chooses a lowering for every node, or for a pattern of several nodes.
#ifndef ANEMONE_PARTITIONER_COVER_H_
#define ANEMONE_PARTITIONER_COVER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/lowering.h"
#include "partitioner/plan.h"

namespace anemone {

// The rule of a node that stays on the CPU with all nodes of its bodies.
inline constexpr absl::string_view kBodyOnCpu = "body-on-cpu";

// A lowering of a match, before a target judges its units.
struct Attempt {
  std::shared_ptr<const Verdict> refusal;  // null if it is not refused
  std::shared_ptr<const Lowered> lowered;  // null if it is
};

// What planning a graph for one target finds out, and needs for every other target too.
struct CoverFacts {
  // `keeps`: keep what was tried, because another target follows. `loops`: recurrences become loops
  // (engine/loops.h).
  CoverFacts(const Graph& graph, bool keeps, bool loops);
  CoverFacts(const CoverFacts&) = delete;
  CoverFacts& operator=(const CoverFacts&) = delete;

  using Tried = std::pair<const Lowering*, NodeId>;  // the anchor of the match

  const GraphView view;
  // By value: the node because of which its type or shape is not known, or kNone.
  const std::vector<NodeId> makers_of_unknown;
  // Lowerings that did not ask the target. They are those of one route and one choice of
  // PlanOptions::clamp_activations.
  absl::flat_hash_map<Tried, Attempt> attempts;
  absl::flat_hash_map<Tried, std::shared_ptr<const Verdict>> ranges;  // JudgeRange(), or null
  const bool keeps, loops;
};

// The nodes that one lowering covers, or one node that no lowering covers.
struct Cover {
  std::vector<NodeId> nodes;               // the anchor last
  std::shared_ptr<const Lowered> lowered;  // null if no lowering wrote units
  bool rewritten = false;
  // Accepted, or the reason of the first lowering of the node alone. The rules `fp16-range` and
  // `model-limit` go first.
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
absl::StatusOr<std::vector<Cover>> ChooseCovers(CoverFacts& facts, const PlanOptions& options,
                                                const std::vector<bool>& refused,
                                                std::vector<MissedPattern>& missed);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_COVER_H_
