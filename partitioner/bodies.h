// partitioner/bodies.h: control flow: which of a graph's Ifs, Loops and Scans Anemone runs itself,
// and plans for their bodies.
#ifndef ANEMONE_PARTITIONER_BODIES_H_
#define ANEMONE_PARTITIONER_BODIES_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "partitioner/cover.h"
#include "partitioner/plan.h"

namespace anemone {

using BodiesByNode = std::map<NodeId, std::vector<PlannedBody>>;
using PlanOneGraph = absl::StatusOr<Plan>(const Model&, const Graph&, const PlanOptions&);

// The bodies of each node that Anemone runs: some body of it computes something on the engine,
// every body can be planned and takes and makes no optional, and no node in it stands for a node of
// the file that others outside it stand for too (as a function's may that was expanded as a whole;
// design.md, Origins).
BodiesByNode PlanBodies(const Model& model, const Graph& graph, const PlanOptions& options,
                        PlanOneGraph& plan_graph);

// Sees to it that each of these nodes is a CPU segment of its own, and says why.
void SetApart(const BodiesByNode& bodies, std::vector<Cover>& covers,
              std::vector<int>& opset_classes);

// MACs of the nodes in the bodies of `node`: of an If, those of all branches; of a Loop or Scan,
// those of one iteration times their number, or times one where that is not known.
int64_t BodyMacsOf(const Graph& graph, const Node& node);

// Of a node's origins the one to name it after: of its own operator, and not inside its bodies.
OriginId NamingOrigin(const Model& model, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_BODIES_H_
