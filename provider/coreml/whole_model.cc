#include "provider/coreml/whole_model.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "kernels/fp16_range.h"
#include "kernels/integers.h"
#include "partitioner/segments.h"
#include "partitioner/unit_names.h"
#include "provider/coreml/node_writer.h"
#include "provider/coreml/program_writer.h"
#include "provider/package/engine_format.h"

namespace anemone {
namespace {

// The nodes whose units have no MIL form, with the reason.
absl::StatusOr<std::map<NodeId, std::string>> WithoutForm(const Graph& graph, const Plan& plan,
                                                          std::vector<std::string>& notes) {
  ANEMONE_ASSIGN_OR_RETURN(const EngineFormat* format, FindEngineFormat("mil", {}));
  std::map<NodeId, std::string> found;
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    if (segment.placement != Placement::kEngine) continue;
    absl::flat_hash_map<std::string, NodeId> nodes;
    for (NodeId node : segment.nodes) {
      nodes[graph.values[NamingOutput(graph.nodes[node])].name] = node;
    }
    for (const UnitNote& note : format->judge(segment.network, *plan.target, {}).missing) {
      const auto named = FindByUnitName(nodes, note.unit);
      const NodeId node = named == nodes.end() ? kNone : named->second;
      if (!note.unit.empty() && node == kNone) {
        return absl::InternalError(absl::StrCat("unit '", note.unit, "' belongs to no node"));
      }
      if (node != kNone) found.emplace(node, note.why);
      if (node == kNone) notes.push_back(absl::StrCat("segment ", i, ": ", note.why));
    }
  }
  return found;
}

// The node's floats are fp32, because fp16 would change them.
bool NeedsRange(const PlanEntry& entry) {
  const std::string rule = entry.verdict.rule_id();
  return entry.placement == Placement::kCpu &&
         (rule == kFp16Range || rule == kIntegerRange || rule == kIntegerForm);
}

// The nodes are one unit with a sum between them, such as a layer normalization in parts: the unit
// may add what exceeds fp16.
bool SumsBetween(const Graph& graph, const PlanEntry& entry) {
  return entry.nodes.size() > 1 &&
         std::any_of(entry.nodes.begin(), entry.nodes.end(), [&](NodeId node) {
           return absl::StartsWith(graph.nodes[node].op_type, "Reduce");
         });
}

absl::Status WriteNode(const Model& model, const Node& node, bool needs_range, ProgramWriter& to) {
  const MilNode* row = FindMilNode(node);
  absl::Status status;
  if (row == nullptr) {
    status = absl::UnimplementedError(absl::StrCat(
        "no MIL operation is known for the operator",
        to.may_be_free() ? " with free sizes; convert it for one size, with --dim NAME=N" : ""));
  } else {
    to.NameAfter(model.graph.values[NamingOutput(node)].name);
    NodeWriter writer(to, node, needs_range ? "fp32" : "fp16");
    row->write(writer);
    status = writer.status();
  }
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(NodeLabel(model, node),
                                                  ": Core ML cannot have it: ", status.message()));
}

}  // namespace

absl::StatusOr<MilPlan> PlanForMil(const Model& model, PlanOptions options) {
  options.route = Route::kMil;
  MilPlan made;
  while (true) {
    ANEMONE_ASSIGN_OR_RETURN(made.plan, MakePlan(model, options));
    made.notes.clear();
    ANEMONE_ASSIGN_OR_RETURN(auto found, WithoutForm(model.graph, made.plan, made.notes));
    const size_t before = made.no_form.size();
    for (auto& [node, why] : found) {
      const ValueId named = NamingOutput(model.graph.nodes[node]);
      options.policy.refused_units.push_back(absl::StrCat("node:", model.graph.values[named].name));
      made.no_form.emplace(node, std::move(why));
    }
    if (found.empty()) return made;
    if (made.no_form.size() == before) {
      return absl::InternalError("a node without a MIL form stays on the engine");
    }
  }
}

std::set<std::string> OperatorsWithoutRow(const Graph& graph, const Plan* plan) {
  std::set<std::string> found;
  const auto add = [&](const Node& node) {
    if (node.domain.empty() && FindMilNode(node) == nullptr) found.insert(node.op_type);
  };
  if (plan == nullptr) {
    for (const Node& node : graph.nodes) add(node);
    return found;
  }
  for (const Segment& segment : plan->segments) {
    if (segment.placement == Placement::kEngine) continue;
    for (NodeId node : segment.nodes) add(graph.nodes[node]);
  }
  return found;
}

std::set<std::string> HalfOrigins(const Model& model, const Plan& plan) {
  std::set<std::string> found;
  for (const PlanEntry& entry : plan.entries) {
    if (NeedsRange(entry) || SumsBetween(model.graph, entry)) continue;
    for (NodeId node : entry.nodes) {
      for (OriginId origin : model.graph.nodes[node].origins) {
        found.insert(model.origins[origin].id);
      }
    }
  }
  return found;
}

absl::StatusOr<WrittenModel> WriteFreeModel(const Model& model, const std::set<std::string>& halves,
                                            const PortWishes& wishes, const MilBlobSink& blobs) {
  ProgramWriter writer(model.graph, blobs, /*may_be_free=*/true);
  ANEMONE_RETURN_IF_ERROR(writer.AddPorts(wishes));
  for (const Node& node : model.graph.nodes) {
    const bool is_half =
        std::any_of(node.origins.begin(), node.origins.end(),
                    [&](OriginId origin) { return halves.contains(model.origins[origin].id); });
    ANEMONE_RETURN_IF_ERROR(WriteNode(model, node, !is_half, writer));
  }
  ANEMONE_RETURN_IF_ERROR(writer.AddOutputs());
  return WrittenModel{writer.program(), writer.notes()};
}

absl::StatusOr<WrittenModel> WriteWholeModel(const Model& model, const Plan& plan,
                                             const PortWishes& wishes, const MilBlobSink& blobs) {
  std::vector<bool> needs_range(model.graph.nodes.size(), false);
  for (const PlanEntry& entry : plan.entries) {
    for (NodeId node : entry.nodes) needs_range[node] = NeedsRange(entry);
  }
  ProgramWriter writer(model.graph, blobs);
  ANEMONE_RETURN_IF_ERROR(writer.AddPorts(wishes));
  for (const Segment& segment : plan.segments) {
    if (segment.placement == Placement::kEngine) {
      ANEMONE_RETURN_IF_ERROR(writer.AddSegment(segment, *plan.target));
      continue;
    }
    for (NodeId id : segment.nodes) {
      ANEMONE_RETURN_IF_ERROR(WriteNode(model, model.graph.nodes[id], needs_range[id], writer));
    }
  }
  ANEMONE_RETURN_IF_ERROR(writer.AddOutputs());
  return WrittenModel{writer.program(), writer.notes()};
}

}  // namespace anemone
