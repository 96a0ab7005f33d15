#include "provider/cpu_parts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/infer/no_elements.h"
#include "importer/opset/opsets.h"
#include "provider/operand_guards.h"
#include "provider/surface_plan.h"

namespace anemone {
namespace {

// kUnimplemented: one of these nodes reads a tensor that is known to have no elements.
absl::Status CheckOperands(const Graph& graph, absl::Span<const NodeId> nodes) {
  for (const NodeId id : nodes) {
    const Node& node = graph.nodes[id];
    for (const NeededOperand& operand : OperandsWithoutElements(graph, node)) {
      if (!operand.has_none) continue;
      return absl::UnimplementedError(absl::StrCat(
          ShortLabel(graph, node), ": input ", operand.input, " '",
          Printable(graph.values[node.inputs[operand.input]].name),
          "' has no elements, for which ONNX Runtime ends the process; give at least one ",
          operand.axis == kNone ? "element" : "sequence"));
    }
  }
  return absl::OkStatus();
}

// Finds the file's nodes that compute a CPU segment.
class FileNodes {
 public:
  FileNodes(const Graph& graph, const Plan& plan, const Graph& as_read)
      : graph_(graph), plan_(plan), file_(as_read) {
    SetProducers(file_);
    PlaceOrigins();
    MatchValues();
  }

  // Nullopt if the segment lacks a part of one of these nodes. Takes time for the nodes that the
  // segment's outputs depend on, up to its inputs.
  std::optional<OnnxModel> ModelOf(int segment) {
    std::vector<ValueId> inputs, outputs;
    if (!Match(plan_.segments[segment].inputs, inputs) ||
        !Match(plan_.segments[segment].outputs, outputs)) {
      return std::nullopt;
    }
    const Values given(inputs.begin(), inputs.end());
    const std::vector<NodeId> near = NodesBehind(segment, given, outputs);
    const std::optional<std::vector<NodeId>> nodes =
        NodesFor(near, Computed(near, given), given, outputs);
    if (!nodes) return std::nullopt;
    auto opsets = CommonOpsets(file_, *nodes);
    if (!opsets.ok()) return std::nullopt;
    if (!CheckOperands(file_, *nodes).ok()) return std::nullopt;
    auto model = ToOnnx(file_, *nodes, inputs, outputs, {.opsets = *std::move(opsets)});
    if (!model.ok()) return std::nullopt;
    GuardOperands(file_, *nodes, *model);
    return *std::move(model);
  }

  // The file's graph with the types and shapes of the imported one.
  const Graph& file() const { return file_; }

 private:
  static constexpr int kNowhere = -1, kSeveral = -2;
  using Values = absl::flat_hash_set<ValueId>;  // of the file

  void PlaceOrigins() {
    for (size_t i = 0; i < plan_.segments.size(); ++i) {
      for (NodeId id : plan_.segments[i].nodes) {
        for (OriginId origin : graph_.nodes[id].origins) {
          if (static_cast<size_t>(origin) >= place_.size()) place_.resize(origin + 1, kNowhere);
          int& place = place_[origin];
          place =
              place == kNowhere || place == static_cast<int>(i) ? static_cast<int>(i) : kSeveral;
        }
      }
    }
  }

  // Values of one name are the same value.
  void MatchValues() {
    absl::flat_hash_map<absl::string_view, ValueId> named;
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      named.emplace(graph_.values[v].name, static_cast<ValueId>(v));
    }
    in_file_.resize(graph_.values.size(), kNone);
    in_graph_.resize(file_.values.size(), kNone);
    for (size_t v = 0; v < file_.values.size(); ++v) {
      const auto found = named.find(file_.values[v].name);
      if (found == named.end()) continue;
      const Value& value = graph_.values[found->second];
      Value& own = file_.values[v];
      if (own.type != DataType::kUndefined && own.type != value.type) continue;
      in_file_[found->second] = static_cast<ValueId>(v);
      in_graph_[v] = found->second;
      own.type = value.type;
      own.other_type = value.other_type;
      own.shape = value.shape;
    }
    for (const Value& value : file_.values) is_constant_.push_back(value.constant.has_value());
  }

  bool Match(const std::vector<ValueId>& values, std::vector<ValueId>& matched) const {
    for (ValueId v : values) {
      if (in_file_[v] == kNone) return false;
      matched.push_back(in_file_[v]);
    }
    return true;
  }

  // By value of the file.
  bool IsFolded(ValueId v) const {
    return in_graph_[v] != kNone && graph_.values[in_graph_[v]].constant.has_value();
  }

  // A node that nothing is left of may be computed anywhere: it was folded, or changed nothing.
  bool MayRun(const Node& node, int segment) const {
    return std::all_of(node.origins.begin(), node.origins.end(), [&](OriginId origin) {
      const int place = static_cast<size_t>(origin) < place_.size() ? place_[origin] : kNowhere;
      return place == segment || place == kNowhere;
    });
  }

  template <class Function>
  static void ForEachRead(const Node& node, const Function& function) {
    for (const auto* values : {&node.inputs, &node.captures}) {
      for (ValueId v : *values) {
        if (v != kNone) function(v);
      }
    }
  }

  // The nodes that may run in the segment and that the outputs depend on, in the file's order.
  std::vector<NodeId> NodesBehind(int segment, const Values& given,
                                  const std::vector<ValueId>& outputs) const {
    std::vector<NodeId> found;
    absl::flat_hash_set<NodeId> seen;
    std::vector<ValueId> left = outputs;
    while (!left.empty()) {
      const ValueId v = left.back();
      left.pop_back();
      const NodeId id = file_.values[v].producer;
      if (id == kNone || given.contains(v) || !seen.insert(id).second) continue;
      if (!MayRun(file_.nodes[id], segment)) continue;
      found.push_back(id);
      ForEachRead(file_.nodes[id], [&](ValueId read) { left.push_back(read); });
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // What these nodes can compute.
  Values Computed(const std::vector<NodeId>& nodes, const Values& given) const {
    Values computed;
    for (NodeId id : nodes) {
      bool runs = true;
      ForEachRead(file_.nodes[id], [&](ValueId v) {
        runs =
            runs && (is_constant_[v] || given.contains(v) || computed.contains(v) || IsFolded(v));
      });
      if (!runs) continue;
      for (ValueId v : file_.nodes[id].outputs) {
        if (v != kNone) computed.insert(v);
      }
    }
    return computed;
  }

  // Those of `near` that compute the outputs, in the file's order. Values that they cannot compute
  // and that were folded become constants of the file's graph.
  std::optional<std::vector<NodeId>> NodesFor(const std::vector<NodeId>& near,
                                              const Values& computed, const Values& given,
                                              const std::vector<ValueId>& outputs) {
    Values needed;
    for (ValueId v : outputs) {
      if (!computed.contains(v)) return std::nullopt;
      needed.insert(v);
    }
    std::vector<NodeId> nodes;
    for (auto id = near.rbegin(); id != near.rend(); ++id) {
      const Node& node = file_.nodes[*id];
      const bool is_needed = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
        return needed.contains(v) && !given.contains(v) && computed.contains(v);
      });
      if (!is_needed) continue;
      nodes.push_back(*id);
      ForEachRead(node, [&](ValueId v) {
        needed.insert(v);
        if (given.contains(v) || computed.contains(v) || is_constant_[v]) return;
        file_.values[v].constant = graph_.values[in_graph_[v]].constant;
      });
    }
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  const Graph& graph_;
  const Plan& plan_;
  Graph file_;                     // a copy, with the types of graph_
  std::vector<int> place_;         // by origin: the segment with its nodes
  std::vector<ValueId> in_file_;   // by value of graph_
  std::vector<ValueId> in_graph_;  // by value of file_
  std::vector<bool> is_constant_;  // by value of file_, as it was read
};

bool RunsAsSession(const Graph& graph, const Segment& segment) {
  return segment.placement == Placement::kCpu && segment.bodies.empty() &&
         !HasRowWrites(graph, segment);
}

absl::Status Open(RuntimeSource runtime, OnnxModel model, CpuPart& part) {
  part.plain = PlainPart::Of(model);
  part.model.model = model;
  if (part.plain != nullptr) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(auto opened, runtime());
  ANEMONE_ASSIGN_OR_RETURN(
      part.segment, CpuSegment::FromModel(opened, std::move(model), {.label = part.model.label}));
  return absl::OkStatus();
}

std::vector<std::string> NamesOf(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (ValueId v : values) names.push_back(graph.values[v].name);
  return names;
}

}  // namespace

absl::Status CheckForRuntime(const Graph& graph, const Plan& plan) {
  for (const Segment& segment : plan.segments) {
    if (segment.placement != Placement::kCpu) continue;
    ANEMONE_RETURN_IF_ERROR(CheckOperands(graph, segment.nodes));
  }
  return absl::OkStatus();
}

bool IsSafeForRuntime(const Graph& graph, const Plan& plan, const Graph& as_read) {
  if (std::none_of(as_read.nodes.begin(), as_read.nodes.end(), NeedsElements)) return true;
  const FileNodes file(graph, plan, as_read);
  return std::all_of(file.file().nodes.begin(), file.file().nodes.end(), [&](const Node& node) {
    return OperandsWithoutElements(file.file(), node).empty();
  });
}

absl::StatusOr<std::vector<CpuPart>> MakeCpuParts(RuntimeSource runtime, const Graph& graph,
                                                  const Plan& plan, const Graph* as_read) {
  ANEMONE_RETURN_IF_ERROR(CheckForRuntime(graph, plan));
  std::vector<CpuPart> parts(plan.segments.size());
  std::optional<FileNodes> file;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Segment& segment = plan.segments[i];
    if (!RunsAsSession(graph, segment)) continue;
    CpuPart& part = parts[i];
    part.model.label = CpuSegment::LabelOf(graph, segment.nodes);
    if (as_read != nullptr && !PlainPart::MayBe(graph, segment.nodes)) {
      if (!file) file.emplace(graph, plan, *as_read);
      std::optional<OnnxModel> own = file->ModelOf(static_cast<int>(i));
      if (own && Open(runtime, *std::move(own), part).ok()) continue;
    }
    ANEMONE_ASSIGN_OR_RETURN(OnnxModel model, CpuSegment::ModelOf(graph, segment.nodes,
                                                                  segment.inputs, segment.outputs));
    GuardOperands(graph, segment.nodes, model);
    ANEMONE_RETURN_IF_ERROR(Open(runtime, std::move(model), part));
  }
  return parts;
}

absl::StatusOr<std::vector<CpuPart>> MakeCpuParts(RuntimeSource runtime, const Graph& graph,
                                                  std::vector<CpuModel> models, const Plan& plan,
                                                  const ModelFile& file) {
  std::vector<CpuPart> parts(plan.segments.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Segment& segment = plan.segments[i];
    if (!RunsAsSession(graph, segment)) continue;
    CpuPart& part = parts[i];
    part.model = std::move(models[i]);
    if (!part.model.is_file) {
      ANEMONE_RETURN_IF_ERROR(Open(runtime, std::move(part.model.model), part));
      continue;
    }
    ANEMONE_ASSIGN_OR_RETURN(const auto opened, runtime());
    ANEMONE_ASSIGN_OR_RETURN(part.segment,
                             CpuSegment::FromFile(opened, file, NamesOf(graph, segment.inputs),
                                                  NamesOf(graph, segment.outputs)));
  }
  return parts;
}

std::optional<WholeModel> OpenWhole(const std::shared_ptr<const OrtRuntime>& runtime,
                                    const ModelFile& file) {
  auto segment = CpuSegment::FromFile(runtime, file);
  if (!segment.ok()) return std::nullopt;
  WholeModel whole;
  const auto add = [&](const std::vector<CpuPort>& ports, std::vector<ValueId>& to) {
    for (const CpuPort& port : ports) {
      const bool is_known =
          port.kind == CpuValue::Kind::kTensor && port.type != DataType::kUndefined &&
          !port.has_default && !port.shape.empty() &&
          std::all_of(port.shape.begin(), port.shape.end(), [](const Dim& d) { return d.known(); });
      if (!is_known) return false;
      const auto is_zero = [](const Dim& dim) { return dim.size == 0; };
      if (std::any_of(port.shape.begin(), port.shape.end(), is_zero)) return false;
      const auto has_its_name = [&](const Value& value) { return value.name == port.name; };
      const auto& values = whole.graph.values;
      const auto found = std::find_if(values.begin(), values.end(), has_its_name);
      to.push_back(static_cast<ValueId>(found - values.begin()));
      if (found != values.end()) continue;  // an input that is also an output
      whole.graph.values.push_back({.name = port.name, .type = port.type, .shape = port.shape});
    }
    return true;
  };
  const CpuSession& session = (*segment)->session();
  if (!add(session.inputs(), whole.graph.inputs) || !add(session.outputs(), whole.graph.outputs)) {
    return std::nullopt;
  }
  const auto is_input = [&](ValueId v) {
    return v < static_cast<ValueId>(whole.graph.inputs.size());  // they were added first
  };
  const auto& made = whole.graph.outputs;
  if (std::all_of(made.begin(), made.end(), is_input)) return std::nullopt;  // nothing to run
  whole.part.model.is_file = true;
  whole.part.segment = *std::move(segment);
  return whole;
}

Plan WholeOnCpu(const Graph& graph, const Plan& plan) {
  Plan whole{.target = plan.target, .route = plan.route};
  Segment& segment = whole.segments.emplace_back();
  segment.inputs = graph.inputs;
  for (ValueId v : graph.outputs) {  // an input that is also an output is not computed
    const bool is_input = std::count(graph.inputs.begin(), graph.inputs.end(), v) > 0;
    if (!is_input) segment.outputs.push_back(v);
  }
  return whole;
}

}  // namespace anemone
