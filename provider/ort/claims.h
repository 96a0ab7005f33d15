// provider/ort/claims.h: maps the engine segments of a plan to the sets of ONNX Runtime's nodes
// that the plugin claims.
//
// A plan is made for the importer's Graph, in which constants are folded and identities removed.
// ONNX Runtime fuses a set of its nodes into one node, and derives the inputs and outputs from the
// set. The set must be convex. So a claim has the nodes of a segment, and these folded nodes too:
//   - nodes on a path between two nodes of the segment: otherwise the set is not convex;
//   - nodes whose results only the set reads, such as the Transpose of a weight;
//   - nodes that pass a value of the set on, such as an Identity before the graph's output.
// A folded node can hide that a segment depends on a node of another provider (for example the
// Shape of a value that another provider computes). Such a node is made opaque to the importer, and
// the plan is made again.
#ifndef ANEMONE_PROVIDER_ORT_CLAIMS_H_
#define ANEMONE_PROVIDER_ORT_CLAIMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "importer/importer.h"
#include "partitioner/plan.h"
#include "provider/ort/ort_graph.h"

namespace anemone {

// One engine segment.
struct Claim {
  int segment = 0;         // of the plan
  std::vector<int> nodes;  // of the HostGraph, ascending
  KnownValues inputs;      // of the values that the fused node reads
};

struct HostPlan {
  Model model;
  Plan plan;  // segments that cannot be claimed are marked as on the CPU, with the reason
  std::vector<Claim> claims;
};

// A set of nodes as a model of one engine segment.
struct Fused {
  Model model;
  Plan plan;
};

absl::StatusOr<HostPlan> PlanHostGraph(const HostGraph& graph, const PlanOptions& options,
                                       int min_segment_nodes, const ImportOptions& importing);

// Plans these nodes as a separate model. kFailedPrecondition: the plan is not exactly one engine
// segment.
absl::StatusOr<Fused> PlanFused(const HostGraph& graph, const std::vector<int>& nodes,
                                const KnownValues& inputs, const PlanOptions& options,
                                const ImportOptions& importing);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_CLAIMS_H_
