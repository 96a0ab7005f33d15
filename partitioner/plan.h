// partitioner/plan.h: where every node of a model goes on a target, and why. The partitioner takes
// the widest lowering that the target accepts for each node, else the next; what nobody takes stays
// as it is for the CPU. Accepted nodes form convex segments, as few as the graph allows.
//
//   ASSIGN_OR_RETURN(Plan plan, MakePlan(model, {.target = t}));
//   std::cout << PlanText(model, plan);
//
// A plan is a function of model, target, route and policy alone. MakePlan is linear in nodes.
#ifndef ANEMONE_PARTITIONER_PLAN_H_
#define ANEMONE_PARTITIONER_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/network.h"
#include "engine/target.h"
#include "engine/verdict.h"
#include "importer/graph.h"

namespace anemone {

// What the user wants kept off the engine, whatever the target says.
struct Policy {
  bool cpu_only = false;
  std::vector<std::string> refused_units;  // unit types, as `anemone units` lists them

  // "maximal" (the default), "cpu", or "refuse:Pooling,Softmax".
  static absl::StatusOr<Policy> Parse(absl::string_view text);
};

struct PlanOptions {
  const Target* target = nullptr;
  Route route = Route::kNetplist;
  Policy policy;
  bool rewrites = true;
  // Bodies of If, Loop and Scan get plans of their own, for who can run them
  // (docs/control_flow.md). The plugin's host shows each body by itself.
  bool bodies = false;
};

enum class Placement { kEngine, kCpu, kFolded };
absl::string_view PlacementName(Placement placement);  // "engine", "cpu", "folded"

// One line of the report: nodes that go one way together. Its id, name and operator are those of
// its last node.
struct PlanEntry {
  std::vector<OriginId> origins;  // the file's nodes it covers; every origin is in one entry
  std::vector<NodeId> nodes;      // of the Graph; empty if folded
  OriginId shown = 0;             // the origin it is named after
  Placement placement = Placement::kCpu;
  int segment = -1;                // -1 if folded
  std::vector<std::string> units;  // unit types it became, or would have become
  int64_t macs = 0;  // in one run of the model, as far as the trip counts of loops are known
  bool rewritten = false;
  std::string bound;  // how far results may be off, if more than by roundings to fp16
  Verdict verdict;    // if on the CPU: why
};

struct PlannedBody;

struct Segment {
  Placement placement = Placement::kCpu;
  std::vector<NodeId> nodes;     // in the graph's order
  std::vector<ValueId> inputs;   // made outside (constants are not listed)
  std::vector<ValueId> outputs;  // read outside
  Network network;               // engine: ports are inputs and outputs, in this order
  int entries = 0;
  // Not empty: the segment is one If, Loop or Scan on the CPU, and these are its bodies, as
  // BodiesOf() lists them. Else its bodies, if there are any, are ONNX Runtime's to run.
  std::vector<PlannedBody> bodies;
};

struct PlanWarning {
  std::string rule, node, message, remedy, source;
  bool of_kind = false;  // what it says holds of all units of a kind
};

struct Plan {
  const Target* target = nullptr;
  Route route = Route::kNetplist;
  Status status = Status::kMeasured;  // the weakest of the accepted verdicts
  std::vector<PlanEntry> entries;     // in the graph's order, the folded ones last
  std::vector<Segment> segments;      // in an order in which they can run
  std::vector<PlanWarning> warnings;
  // The number of segments[0] in what is shown: those of bodies are counted behind the outer ones.
  int first_segment = 0;

  // With those of bodies.
  int engine_segments() const;
  int cpu_segments() const;
  int64_t macs() const;
  int64_t engine_macs() const;
};

struct PlannedBody {
  Attribute::GraphPtr graph;
  Plan plan;  // no entries for what is folded, and no warnings: the outermost plan has them
};

// The plan, and those of all bodies in it, outer ones first.
struct PlanPart {
  const Graph* graph;
  const Plan* plan;
};
std::vector<PlanPart> PartsOf(const Graph& graph, const Plan& plan);

// Errors: kInvalidArgument if a node breaks ONNX's rules in a way that only shows now.
absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_H_
