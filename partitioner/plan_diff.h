// partitioner/plan_diff.h: what differs between two plans: which nodes moved between engine and CPU
// and why, which were added or removed, and what that costs.
//
//   ANEMONE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(model, {.target = t}));
//   const Json old_plan = PlanJson(model, plan), new_plan = PlanJson(model, plan);
//   const absl::StatusOr<PlanDiff> diff =
//       DiffPlans({"old.onnx", old_plan}, {"new.onnx", new_plan});
//   if (diff.ok()) std::cout << DiffText(*diff, 80, /*every_node=*/false);
//
// A plan is an item of "targets" in the document of `anemone check --json`, so saved documents can
// be compared too. Two plans of one model are matched by the ids of the file's nodes. Those of two
// models are matched by name and operator, in order; then by name; then by operator and MACs, and
// by operator alone, in order. Two models that have hardly a name, and few operators, in common are
// not matched at all.
#ifndef ANEMONE_PARTITIONER_PLAN_DIFF_H_
#define ANEMONE_PARTITIONER_PLAN_DIFF_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "partitioner/plan_json.h"

namespace anemone {

// A plan with the path of its model.
struct PlanDocument {
  std::string path;
  Json plan;
};

// A node of a plan; of two models, an entry of the plan with all nodes that it covers.
struct PlannedNode {
  std::string id, name, op_type, placement;
  std::string reason;        // if on the CPU: "[rule] message"
  std::optional<double> us;  // the estimated time on the engine
  int64_t covers = 1;        // nodes of the file
  const std::string& label() const { return name.empty() ? id : name; }
};

struct PlanDiff {
  struct Side {
    std::string path, target;
    Json summary;
    int64_t nodes = 0;  // of the file
  };

  Side a, b;
  std::vector<std::pair<PlannedNode, PlannedNode>> moved;  // between engine and CPU
  std::vector<PlannedNode> added, removed;
  bool related = true;  // false: the models have nothing in common, and no node is matched
  // No node differs, and neither do segments and MACs.
  bool equal = true;
};

// Errors: kInvalidArgument if a plan is not as docs/schemas/check.json says.
absl::StatusOr<PlanDiff> DiffPlans(const PlanDocument& a, const PlanDocument& b);

// The document of `anemone diff --json` (docs/schemas/diff.json).
Json DiffJson(const PlanDiff& diff);
// At most ten nodes of each list, or every node.
std::string DiffText(const PlanDiff& diff, int width, bool every_node);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_DIFF_H_
