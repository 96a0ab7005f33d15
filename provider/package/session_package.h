// provider/package/session_package.h: a planned model as a package: all that Session needs to run
// it without importing and planning it again. The engine segments are those of any package.
// Section "session.model" has the rest, as a ModelProto with one node for each segment. Its parts:
//   inputs, outputs, value_info: the model's ports and the values between segments
//   initializers: defaults of inputs, constant outputs, constants of CPU segments
//   node "engine": engine segment "segment" of the package
//   node "cpu": a CPU segment. Its model is attribute "model"; the inputs after the segment's own
//               are that model's constants, attribute "constants"
//   node "file": the CPU segment that is the whole model
//   node "rows": writes rows into a state where it is, by the nodes of graph "writes"
//   metadata_props: the plan's line, summary and memory; Graph::constant_inputs
// Section "session.weights" is the JSON of provider/weights/weight_places.h.
#ifndef ANEMONE_PROVIDER_PACKAGE_SESSION_PACKAGE_H_
#define ANEMONE_PROVIDER_PACKAGE_SESSION_PACKAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "importer/graph.h"
#include "partitioner/plan.h"
#include "provider/cpu_parts.h"
#include "provider/memory_budget.h"
#include "provider/package/package.h"
#include "provider/weights/weight_places.h"

namespace anemone {

// What a session tells of its plan.
struct PlanFacts {
  std::string line;  // PlanLine()
  PlanSummary summary;
  std::string copied_state;                    // PlanInPlace::refusal
  MemoryNeed cpu_need;                         // of CPU segments; zeros: it is not known
  std::shared_ptr<const WeightPlaces> places;  // null: not known
};

struct PlannedModel {
  Graph graph;  // the values at the ports of segments; nodes that write rows only
  Plan plan;    // only the target, the route and the segments, without nodes but these
  std::vector<CpuModel> cpu_models;  // by segment
  PlanFacts facts;
};

// `cpu_models` are those of the plan's CPU segments, by segment. `sources` is Package::sources. The
// package borrows the constants. kUnimplemented: a body of If,
// Loop or Scan has an engine segment, which a package cannot hold, or a value has no name. Other
// errors: those of ToOnnx().
absl::StatusOr<Package> ToPackage(const Graph& graph, const Plan& plan,
                                  const std::vector<CpuModel>& cpu_models, const PlanFacts& facts,
                                  std::vector<Tensor> sources);

// kDataLoss: the package contradicts itself, or is not of a session.
absl::StatusOr<PlannedModel> FromPackage(const Package& package);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_SESSION_PACKAGE_H_
