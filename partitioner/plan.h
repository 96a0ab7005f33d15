// partitioner/plan.h: the plan of a model for a target: for every node, whether it runs on the
// engine or on the CPU, and why. For each node the partitioner takes the widest lowering that the
// target accepts. A node without such a lowering stays on the CPU. Accepted nodes are grouped into
// convex segments, as few as the graph allows. A policy may give some of them to the CPU.
//
//   ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(model, {.target = t}));
//   std::cout << PlanText(model, plan, {.every_node = true});
//
// A plan depends only on the model, the target, the route and the other PlanOptions. MakePlan is
// linear in nodes.
#ifndef ANEMONE_PARTITIONER_PLAN_H_
#define ANEMONE_PARTITIONER_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/network.h"
#include "engine/target.h"
#include "engine/verdict.h"
#include "importer/graph.h"
#include "kernels/layout/channels_first.h"

namespace anemone {

// The nodes that the user keeps off the engine even if the target accepts them, and those that the
// user puts there against Anemone's rule.
struct Policy {
  // What the plan is to be best at (partitioner/policies.h).
  enum class Aim : uint8_t { kMaxEngine, kLatency, kFewestSegments };
  Aim aim = Aim::kMaxEngine;
  bool cpu_only = false;
  // Unit types, as `anemone units` lists them; or "node:" and the id or name of a node, or the name
  // of one of its outputs.
  std::vector<std::string> refused_units;
  bool ignores_fp16_range = false;  // kernels/fp16_range.h

  // "max-engine" (the default; also "maximal"), "latency", "fewest-segments", "cpu",
  // "refuse:Pooling,node:/#3", or "insist:fp16-range".
  static absl::StatusOr<Policy> Parse(absl::string_view text);
};

struct PlanOptions {
  const Target* target = nullptr;
  Route route = Route::kNetplist;
  Policy policy;
  bool rewrites = true;
  // Chains of linear layers may become convolutions (kernels/layout/channels_first.h). The
  // placement of nodes does not depend on it.
  bool convolves_layers = true;
  // Plan the bodies of If, Loop and Scan too, for callers that can run them (docs/control_flow.md).
  // Off in the plugin, because ONNX Runtime passes each body as a separate graph.
  bool bodies = false;
  bool clamp_activations =
      false;  // before softmax and layer normalization (kernels/shared/clamps.h)
};

enum class Placement { kEngine, kCpu, kFolded };
absl::string_view PlacementName(Placement placement);  // "engine", "cpu", "folded"

// One line of the report: nodes that are placed together. Its id, name and operator are those of
// its last node.
struct PlanEntry {
  std::vector<OriginId> origins;  // the file's nodes it covers; each is in exactly one entry
  std::vector<NodeId> nodes;      // of the Graph; empty if folded
  OriginId shown = 0;             // the origin that names it
  Placement placement = Placement::kCpu;
  int segment = -1;                // -1 if folded
  std::vector<std::string> units;  // unit types it became, or would have become
  // Multiply-accumulates in one run of the model; loops of unknown trip count are counted once.
  // Nullopt: the nodes have some, but their number is not known.
  std::optional<int64_t> macs = 0;
  bool rewritten = false;
  std::string bound;   // the maximum error, if larger than that of rounding to fp16
  Verdict verdict;     // if on the CPU: why
  std::string remedy;  // instead of the verdict's; "" if that is right
};

struct PlannedBody;

struct Segment {
  Placement placement = Placement::kCpu;
  std::vector<NodeId> nodes;     // in the graph's order
  std::vector<ValueId> inputs;   // computed outside (constants are not listed)
  std::vector<ValueId> outputs;  // read outside
  Network network;               // engine: ports are inputs and outputs, in this order
  std::vector<KeptLayer> kept;   // engine: linear layers that did not become convolutions
  // If not empty, the segment is one If, Loop or Scan node that Anemone runs, and these are its
  // bodies in the order of BodiesOf(). If empty, ONNX Runtime runs all bodies in the segment.
  std::vector<PlannedBody> bodies;
};

struct PlanWarning {
  std::string rule, node, message, remedy, source;  // node: an id, or another place
  OriginId origin = kNone;                          // the node of the file, if it is about one
  bool of_kind = false;                             // the warning applies to all units of a kind
};

struct PlanCosts;  // partitioner/plan_costs.h

struct Plan {
  const Target* target = nullptr;
  Route route = Route::kNetplist;
  Status status = Status::kMeasured;  // the weakest of the accepted verdicts
  std::vector<PlanEntry> entries;     // in the graph's order, the folded ones last
  std::vector<Segment> segments;      // in an order in which they can run
  std::vector<PlanWarning> warnings;
  // The number of segments[0] in reports. Segments of bodies are numbered after the outer ones.
  int first_segment = 0;
  // Of the outermost plan; null in those of bodies, and in one that was read from a package. Made
  // with the plan, because a session drops weights once they are packed.
  std::shared_ptr<const PlanCosts> costs;

  // These include the bodies.
  int engine_segments() const;
  int cpu_segments() const;
  std::optional<int64_t> macs() const;  // nullopt if that of an entry is not known
  std::optional<int64_t> engine_macs() const;
  int nodes_of_unknown_macs() const;  // entries
  // The part of macs() that is on the engine. Nullopt if it is not known, or macs() is 0.
  std::optional<double> engine_macs_share() const;
};

struct PlannedBody {
  Attribute::GraphPtr graph;
  Plan plan;  // without folded entries and warnings: those are in the outermost plan
};

// The plan and the plans of all bodies in it, outer ones first.
struct PlanPart {
  const Graph* graph;
  const Plan* plan;
};
std::vector<PlanPart> PartsOf(const Graph& graph, const Plan& plan);

// Errors: kInvalidArgument if a node breaks an ONNX rule that the importer could not check, or if
// the policy names a node that the model does not have (only with PlanOptions::bodies: the plugin
// plans parts of a model).
absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_H_
