// partitioner/bodies.h: control flow. Chooses which If, Loop and Scan nodes of a graph Anemone runs
// itself, and plans their bodies (subgraphs).
#ifndef ANEMONE_PARTITIONER_BODIES_H_
#define ANEMONE_PARTITIONER_BODIES_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "partitioner/cover.h"
#include "partitioner/plan.h"

namespace anemone {

using BodiesByNode = std::map<NodeId, std::vector<PlannedBody>>;
using PlanOneGraph = absl::FunctionRef<absl::StatusOr<Plan>(const Graph&)>;

// The planned bodies of each node that Anemone runs itself. Anemone runs a node if
// - at least one of its bodies computes something on the engine;
// - every body can be planned, and no input or output of a body is an optional;
// - no node in a body shares an origin with a node outside the body (design.md, Origins). Nodes can
//   share an origin if a model function was expanded as a whole.
BodiesByNode PlanBodies(const Model& model, const Graph& graph, PlanOneGraph plan_graph);

// Keeps the nodes that ONNX Runtime does not run in CPU segments without other nodes, and sets the
// reason that the report shows: each node of `bodies` is a segment, and nodes that write rows into
// a state (importer/row_writes.h) share segments only with each other.
void SetApart(const Graph& graph, const BodiesByNode& bodies, std::vector<Cover>& covers,
              std::vector<int>& opset_classes);

// MACs of the nodes in the bodies of `node`. For an If: the sum over all branches. For a Loop or
// Scan: those of one iteration times the trip count, or of one iteration if it is not known.
// Nullopt if the number for a node is not known.
std::optional<int64_t> BodyMacsOf(const Graph& graph, const Node& node);

// The origin that names the node in reports: one with the same operator, outside the node's bodies.
OriginId NamingOrigin(const Model& model, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_BODIES_H_
