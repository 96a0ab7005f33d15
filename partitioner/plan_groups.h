// partitioner/plan_groups.h: what a plan's text says, counted and grouped: reasons and warnings
// that are the same for many nodes are one group.
#ifndef ANEMONE_PARTITIONER_PLAN_GROUPS_H_
#define ANEMONE_PARTITIONER_PLAN_GROUPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partitioner/plan.h"

namespace anemone {

// An entry and the number of its segment, -1 if it is folded.
struct PlanRow {
  const PlanEntry* entry;
  int segment;
};
// The entries of the plan and of its bodies.
std::vector<PlanRow> RowsOf(const Model& model, const Plan& plan);

// The nodes of the file that the entry covers; if it covers only a part of a node (an aside), that.
std::vector<OriginId> NodesShown(const Model& model, const PlanEntry& entry);

// The number of nodes of the file that the entry covers: 0 if it covers only a part of one.
int NodesOf(const Model& model, const PlanEntry& entry);

// Nodes of the file, each counted once. `cpu_parts`: nodes on the engine of which a part is on the
// CPU.
struct NodeCounts {
  int engine = 0, cpu = 0, folded = 0;
  int cpu_parts = 0;
  int all() const { return engine + cpu + folded; }
};
NodeCounts CountsOf(const Model& model, const Plan& plan);

// The rule of the warning that ONNX Runtime is missing, so that constants are not computed. Many
// nodes are then on the CPU that otherwise would not be.
inline constexpr char kRuntimeMissing[] = "no-onnx-runtime";
// That warning; null if there is none.
const ImportWarning* MissingRuntime(const Model& model);
// Plan::engine_macs_share(), but nullopt if ONNX Runtime is missing.
std::optional<double> KnownShareOf(const Model& model, const Plan& plan);

// Why nodes are on the CPU: one rule (of Anemone's own rules: one message).
struct ReasonGroup {
  const Verdict* verdict = nullptr;  // of the first node
  int nodes = 0;                     // of the file; an entry of parts of a node counts as one
  std::optional<int64_t> macs = 0;   // that the engine does not do
  std::vector<std::pair<std::string, int>> operators;  // the most frequent first
  std::vector<const PlanEntry*> entries;               // in the order of RowsOf()

  // Our sentence; Apple's text in `quote`, "" if there is none.
  std::string sentence, quote;
  std::string remedy;
};
// Those with the most MACs first, unknown MACs before all others, then those with most nodes. With
// `every_message`, a rule whose messages differ has a group for each message.
std::vector<ReasonGroup> ReasonGroupsOf(const Model& model, const Plan& plan, bool every_message);

// Warnings of one rule (if the rule is about kinds of units: of one kind).
struct WarningGroup {
  const PlanWarning* first = nullptr;
  int nodes = 0;
  int64_t macs = 0;  // of these nodes, as far as it is known
};
// First those about no single node and those about faults, then those with the most MACs, then
// those with most nodes.
std::vector<WarningGroup> WarningGroupsOf(const Model& model, const Plan& plan);

// The node's name in the model, or its id if it has none.
std::string NameOf(const Origin& origin);
// "Relu", "MyOp (com.acme)".
std::string OperatorOf(const Origin& origin);
// Where a warning applies.
std::string PlaceOf(const Model& model, const PlanWarning& warning);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_GROUPS_H_
