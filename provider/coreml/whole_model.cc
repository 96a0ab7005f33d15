#include "provider/coreml/whole_model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/fp16.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "importer/operators/operators.h"
#include "kernels/fp16_range.h"
#include "kernels/integers.h"
#include "partitioner/segments.h"
#include "partitioner/unit_names.h"
#include "provider/coreml/node_writer.h"
#include "provider/coreml/program_writer.h"
#include "provider/package/engine_format.h"

namespace anemone {
namespace {

constexpr char kIf[] = "If";

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

// A factor or divisor that fp16 does not hold, while it may hold the result: with (1 - mask) *
// -1e9, 0 * -infinity would not be a number. The engine's units have two factors instead.
bool HasWideFactor(const Graph& graph, const Node& node) {
  if (node.op_type != "Mul" && node.op_type != "Div") return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    const Value& value = graph.values[id];
    const NumberReader read = NumberReaderOf(value.type);
    if (!value.constant || !IsFloating(value.type) || read == nullptr) return false;
    for (int64_t i = 0; i < value.constant->elements(); ++i) {
      const double size = std::abs(read(*value.constant, i));
      if (size > fp16::kLargest || (size != 0 && size < fp16::kSmallestNormal)) return true;
    }
    return false;
  });
}

// Writes the nodes of a model, and those of the bodies of its Ifs, one by one.
class NodesWriter {
 public:
  // `needs_range`: a node's floats are fp32.
  NodesWriter(const Model& model, std::function<bool(const Node&)> needs_range, ProgramWriter& to)
      : model_(model), needs_range_(std::move(needs_range)), to_(to) {}

  absl::Status Write(const Node& node) {
    const auto place = [&] { return NodeLabel(model_, node); };
    const WorkPlace here(place);
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kWrite, place));
    if (node.op_type == kIf && node.domain.empty()) return WriteIf(node);
    const MilNode* row = FindMilNode(node);
    if (row == nullptr) {
      return NotHad(node, absl::StrCat("no MIL operation is known for the operator",
                                       to_.may_be_free() ? " with free sizes; convert it for one "
                                                           "size, with --dim NAME=N"
                                                         : ""));
    }
    const Value& result = to_.graph().values[NamingOutput(node)];
    if (result.is_static() && IsSizedInRun(to_.graph(), node)) {
      return NotHad(node, "the shape of its result is declared, but depends on an input");
    }
    to_.NameAfter(result.name);
    NodeWriter writer(to_, node, FloatsOf(node));
    row->write(writer);
    if (writer.status().ok()) return absl::OkStatus();
    return NotHad(node, writer.status().message(), writer.status().code());
  }

 private:
  const char* FloatsOf(const Node& node) const {
    return needs_range_(node) || HasWideFactor(to_.graph(), node) ? "fp32" : "fp16";
  }

  absl::Status NotHad(const Node& node, absl::string_view why,
                      absl::StatusCode code = absl::StatusCode::kUnimplemented) const {
    return absl::Status(code,
                        absl::StrCat(NodeLabel(model_, node), ": Core ML cannot have it: ", why));
  }

  // A `cond` with a block for each branch.
  absl::Status WriteIf(const Node& node) {
    std::map<std::string, ProgramWriter::Block> branches;
    size_t first = 0;
    for (const Attribute& attribute : node.attributes) {
      const auto* body = std::get_if<Attribute::GraphPtr>(&attribute.value);
      if (body == nullptr) continue;
      const auto captured =
          absl::MakeConstSpan(node.captures).subspan(first, (*body)->captures.size());
      first += captured.size();
      ANEMONE_ASSIGN_OR_RETURN(
          branches[attribute.name],
          to_.WriteBlock(**body, captured, FloatsOf(node), [&] { return WriteAll(**body); }));
    }
    ProgramWriter::Block &yes = branches["then_branch"], &no = branches["else_branch"];
    std::vector<MilType> types;
    types.reserve(yes.results.size());
    for (size_t i = 0; i < yes.results.size(); ++i) {
      const MilVar& result = yes.results[i];
      if (i >= no.results.size() || result.dtype != no.results[i].dtype ||
          result.shape != no.results[i].shape) {
        return NotHad(node,
                      absl::StrCat("the shapes of result ", i + 1, " differ between its branches"));
      }
      types.push_back({result.dtype, result.shape});
    }
    NodeWriter writer(to_, node, FloatsOf(node));
    to_.NameAfter(to_.graph().values[NamingOutput(node)].name);
    const MilVar condition = writer.Squeezed(writer.Reshape(writer.In(0), {1}), 0);
    if (writer.ok()) {
      const std::vector<MilVar> made =
          to_.EmitAll("cond", {{"pred", {condition.name}}}, std::move(types),
                      {std::move(yes.block), std::move(no.block)});
      for (size_t i = 0; i < made.size(); ++i) writer.Out(made[i], i);
    }
    return writer.ok() ? absl::OkStatus() : NotHad(node, writer.status().message());
  }

  absl::Status WriteAll(const Graph& body) {
    for (const Node& node : body.nodes) ANEMONE_RETURN_IF_ERROR(Write(node));
    return absl::OkStatus();
  }

  const Model& model_;
  const std::function<bool(const Node&)> needs_range_;
  ProgramWriter& to_;
};

// Adds the node and the nodes of its bodies.
void AddWithBodies(const Node& node, std::set<const Node*>& to) {
  to.insert(&node);
  for (const Attribute::GraphPtr& body : BodiesOf(node)) {
    for (const Node& inner : body->nodes) AddWithBodies(inner, to);
  }
}

// The nodes whose floats are fp32. No verdict is known of the nodes of bodies without a plan.
std::set<const Node*> WideNodes(const Graph& graph, const Plan& plan) {
  std::set<const Node*> wide;
  for (const auto& [of, part] : PartsOf(graph, plan)) {
    for (const PlanEntry& entry : part->entries) {
      for (NodeId id : entry.nodes) {
        const Node& node = of->nodes[id];
        if (NeedsRange(entry)) wide.insert(&node);
        const bool has_plan = entry.segment >= 0 && !part->segments[entry.segment].bodies.empty();
        if (!BodiesOf(node).empty() && !has_plan) AddWithBodies(node, wide);
      }
    }
  }
  return wide;
}

}  // namespace

absl::StatusOr<MilPlan> PlanForMil(const Model& model, PlanOptions options) {
  options.route = Route::kMil;
  options.bodies = true;  // verdicts of the nodes in branches
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
  std::set<const Node*> nodes;
  if (plan == nullptr) {
    for (const Node& node : graph.nodes) AddWithBodies(node, nodes);
  } else {
    for (const Segment& segment : plan->segments) {
      if (segment.placement == Placement::kEngine) continue;
      for (NodeId node : segment.nodes) AddWithBodies(graph.nodes[node], nodes);
    }
  }
  std::set<std::string> found;
  for (const Node* node : nodes) {
    const bool has_row = node->op_type == kIf || FindMilNode(*node) != nullptr;
    if (node->domain.empty() && !has_row) found.insert(node->op_type);
  }
  return found;
}

std::set<std::string> HalfOrigins(const Model& model, const Plan& plan) {
  std::set<std::string> found;
  const std::set<const Node*> wide = WideNodes(model.graph, plan);
  for (const auto& [graph, part] : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part->entries) {
      if (SumsBetween(*graph, entry)) continue;
      for (NodeId node : entry.nodes) {
        if (wide.contains(&graph->nodes[node])) continue;
        for (OriginId origin : graph->nodes[node].origins) {
          found.insert(model.origins[origin].id);
        }
      }
    }
  }
  return found;
}

absl::StatusOr<WrittenModel> WriteFreeModel(const Model& model, const std::set<std::string>& halves,
                                            const PortWishes& wishes, const MilBlobSink& blobs) {
  ProgramWriter writer(model.graph, blobs, /*may_be_free=*/true);
  ANEMONE_RETURN_IF_ERROR(writer.AddPorts(wishes));
  const auto needs_range = [&](const Node& node) {
    return std::none_of(node.origins.begin(), node.origins.end(),
                        [&](OriginId origin) { return halves.contains(model.origins[origin].id); });
  };
  NodesWriter nodes(model, needs_range, writer);
  for (const Node& node : model.graph.nodes) ANEMONE_RETURN_IF_ERROR(nodes.Write(node));
  ANEMONE_RETURN_IF_ERROR(writer.AddOutputs());
  return WrittenModel{writer.program(), writer.notes()};
}

absl::StatusOr<WrittenModel> WriteWholeModel(const Model& model, const Plan& plan,
                                             const PortWishes& wishes, const MilBlobSink& blobs) {
  const std::set<const Node*> wide = WideNodes(model.graph, plan);
  ProgramWriter writer(model.graph, blobs);
  NodesWriter nodes(
      model, [&](const Node& node) { return wide.contains(&node); }, writer);
  ANEMONE_RETURN_IF_ERROR(writer.AddPorts(wishes));
  for (const Segment& segment : plan.segments) {
    if (segment.placement == Placement::kEngine) {
      ANEMONE_RETURN_IF_ERROR(writer.AddSegment(segment, *plan.target));
      continue;
    }
    for (NodeId id : segment.nodes) {
      ANEMONE_RETURN_IF_ERROR(nodes.Write(model.graph.nodes[id]));
    }
  }
  ANEMONE_RETURN_IF_ERROR(writer.AddOutputs());
  return WrittenModel{writer.program(), writer.notes()};
}

}  // namespace anemone
