// provider/ort/claims.h: which nodes of ONNX Runtime's graph the plan's engine segments stand for.
//
// A plan is of the importer's Graph, where constants are folded and identities gone. ONNX Runtime
// fuses a set of its own nodes into one, whose inputs and outputs it derives from the set; the set
// must be convex. So with the nodes that a segment stands for go the folded ones
//   - that lie on a path between two of them: else ONNX Runtime could not fuse the rest;
//   - whose results only they read: a weight that is transposed first;
//   - that hand their values on, such as an Identity in front of the graph's output.
// Where a folded node hides that a segment waits for another provider (the shape of its own output,
// computed on), the node is made opaque to the importer, and the plan is made again.
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
  std::vector<int> nodes;  // of the HostGraph, rising
  KnownValues inputs;      // of what the fused node reads
};

struct HostPlan {
  Model model;
  Plan plan;  // a segment that cannot be claimed is on the CPU in it, with the reason
  std::vector<Claim> claims;
};

// The one engine segment that a set of nodes becomes by itself.
struct Fused {
  Model model;
  Plan plan;
};

absl::StatusOr<HostPlan> PlanHostGraph(const HostGraph& graph, const PlanOptions& options,
                                       int min_segment_nodes, const ImportOptions& importing);

// The plan of these nodes alone. kFailedPrecondition: it is not one engine segment and nothing
// else.
absl::StatusOr<Fused> PlanFused(const HostGraph& graph, const std::vector<int>& nodes,
                                const KnownValues& inputs, const PlanOptions& options,
                                const ImportOptions& importing);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_CLAIMS_H_
