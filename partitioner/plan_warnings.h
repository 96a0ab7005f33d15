// partitioner/plan_warnings.h: the warnings of a plan, each with the node that it is about.
#ifndef ANEMONE_PARTITIONER_PLAN_WARNINGS_H_
#define ANEMONE_PARTITIONER_PLAN_WARNINGS_H_

#include <vector>

#include "partitioner/cover.h"
#include "partitioner/plan.h"
#include "partitioner/unit_names.h"

namespace anemone {

// What the importer found.
void AddImportWarnings(const Model& model, Plan& plan);

// Design rules that a unit of an engine segment breaks. A node that became many units is warned of
// once.
std::vector<PlanWarning> DesignWarnings(const Model& model, const UnitNames& names,
                                        const PlanOptions& options, const Plan& plan);

// Lowerings that failed though the model is valid.
void AddFaults(const Model& model, const Graph& graph, const std::vector<Cover>& covers,
               Plan& plan);

// Numbers of engine nodes that become 0 in fp16.
void AddVanishing(const Model& model, const GraphView& view, const std::vector<Cover>& covers,
                  Plan& plan);

// Recognized patterns that did not become one unit, with the reason.
void AddMissed(const Model& model, const Graph& graph, const std::vector<MissedPattern>& missed,
               Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_WARNINGS_H_
