// partitioner/planner.h: plans of one model for several targets. Work that does not depend on the
// target is done once: most nodes are lowered for the first target, and targets that give the same
// answers to all questions of planning have the same segments.
//
//   Planner planner(model, {.bodies = true}, targets.size());
//   for (const Target& target : targets) {
//     ANEMONE_ASSIGN_OR_RETURN(Plan plan, planner.Make(target));
//   }
#ifndef ANEMONE_PARTITIONER_PLANNER_H_
#define ANEMONE_PARTITIONER_PLANNER_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "partitioner/plan.h"

namespace anemone {

class Planner {
 public:
  // Borrows the model; the target of `options` is not used. `targets`: how many plans are to be
  // made; for one, nothing is kept. `loops`: as MakeRunPlan().
  Planner(const Model& model, const PlanOptions& options, size_t targets, bool loops = false);
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  // As MakePlan().
  absl::StatusOr<Plan> Make(const Target& target);
  // How many of the plans so far were not taken from those of another target.
  size_t made() const;

 private:
  struct GraphFacts;
  struct Made;
  GraphFacts& FactsOf(const Graph& graph);
  absl::StatusOr<Plan> PlanGraph(const Graph& graph);
  // All but costs and design warnings, which can differ where the segments are the same.
  absl::StatusOr<Made> PlanMain();
  absl::StatusOr<Made*> FindOrMake();
  const std::vector<PlanWarning>& DesignWarningsOf(const Plan& plan, Made& made);

  const Model& model_;
  PlanOptions options_;
  const bool is_one_, loops_;
  std::map<const Graph*, std::unique_ptr<GraphFacts>> facts_;
  std::vector<Made> made_;  // a plan for each set of targets that have the same
};

// As MakePlan(), for a plan that the software engine runs in fast mode: recurrences are loops
// (engine/loops.h), and nodes are placed the same. A plan with loops has no costs and no warnings
// about the design, because it would have to be unrolled for them. The policy neither refuses units
// nor needs costs.
absl::StatusOr<Plan> MakeRunPlan(const Model& model, const PlanOptions& options);

bool HasLoops(const Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLANNER_H_
