#include "provider/package/stored_writes.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/row_writes.h"
#include "provider/surface_plan.h"

namespace anemone {
namespace {

absl::Status DamagedWrite(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("package: rows of a state: ", what, "; it is damaged"));
}

bool IsIn(const std::vector<ValueId>& values, ValueId v) {
  return std::count(values.begin(), values.end(), v) > 0;
}

absl::StatusOr<Attribute> ReadWriteAttribute(const onnx::AttributeProto& stored) {
  switch (stored.type()) {
    case onnx::AttributeProto::INT:
      if (stored.name() != "axis") break;
      return Attribute{stored.name(), int64_t{stored.i()}};
    case onnx::AttributeProto::INTS:
      if (stored.name() != "order") break;
      return Attribute{stored.name(),
                       std::vector<int64_t>(stored.ints().begin(), stored.ints().end())};
    case onnx::AttributeProto::STRING:
      if (stored.name() != "mode" && stored.name() != "reduction") break;
      return Attribute{stored.name(), stored.s()};
    default:
      break;
  }
  return DamagedWrite("an attribute is unknown");
}

bool HasRows(const Value& value) {
  return value.is_static() && IsFloating(value.type) && value.type != DataType::kBFloat16;
}

// The node's operator, operands and order of axes.
absl::Status CheckWrite(const Graph& graph, const Node& node) {
  const std::string& op = node.op_type;
  if (op != "ScatterND" && op != "ScatterElements" && op != "TensorScatter") {
    return DamagedWrite("an operator is unknown");
  }
  const bool has_operands = node.inputs.size() == 3 && node.outputs.size() == 1 &&
                            !IsIn(node.inputs, kNone) && !IsIn(node.outputs, kNone);
  if (!has_operands) return DamagedWrite("operands are missing");
  const Attribute* order = node.FindAttribute("order");
  if (order == nullptr) return DamagedWrite("the order of axes is missing");
  const RowWrite write = RowWriteOf(node);
  const Value &past = graph.values[write.past], &present = graph.values[write.present];
  const DataType positions = graph.values[write.positions].type;
  if (!HasRows(past) || !HasRows(present) || !HasRows(graph.values[write.rows]) ||
      past.dims() != present.dims() || past.type != present.type ||
      (positions != DataType::kInt64 && positions != DataType::kInt32)) {
    return DamagedWrite("a type or shape does not fit");
  }
  std::vector<int64_t> axes = write.order, sorted(past.dims().size());
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<int64_t>(i);
  if (axes != sorted) return DamagedWrite("the order of axes is wrong");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<onnx::GraphProto> StoredWrites(const Graph& graph, const Segment& segment) {
  onnx::GraphProto stored;
  for (const NodeId id : segment.nodes) {
    ANEMONE_ASSIGN_OR_RETURN(*stored.add_node(), ToProto(graph, graph.nodes[id]));
  }
  return stored;
}

absl::Status ReadStoredWrites(const onnx::GraphProto& stored,
                              const std::map<std::string, ValueId>& ids, Graph& graph,
                              Segment& segment) {
  if (stored.node_size() == 0) return DamagedWrite("no node writes them");
  if (stored.node_size() != static_cast<int>(segment.outputs.size())) {
    return DamagedWrite("there are more or fewer nodes than outputs");
  }
  for (const onnx::NodeProto& written : stored.node()) {
    Node node{.name = written.name(), .op_type = written.op_type(), .domain = kStateDomain};
    for (const auto& [names, values] :
         {std::pair{&written.input(), &node.inputs}, {&written.output(), &node.outputs}}) {
      for (const std::string& name : *names) {
        const auto found = ids.find(name);
        values->push_back(found == ids.end() ? kNone : found->second);
      }
    }
    for (const onnx::AttributeProto& attribute : written.attribute()) {
      ANEMONE_ASSIGN_OR_RETURN(node.attributes.emplace_back(), ReadWriteAttribute(attribute));
    }
    ANEMONE_RETURN_IF_ERROR(CheckWrite(graph, node));
    const bool is_of_segment = std::all_of(node.inputs.begin(), node.inputs.end(),
                                           [&](ValueId v) { return IsIn(segment.inputs, v); }) &&
                               IsIn(segment.outputs, node.outputs[0]);
    if (!is_of_segment) return DamagedWrite("a node is not of its segment");
    segment.nodes.push_back(static_cast<NodeId>(graph.nodes.size()));
    graph.nodes.push_back(std::move(node));
  }
  return absl::OkStatus();
}

absl::Status CheckStoredWrites(const Graph& graph, const Plan& plan) {
  const auto count = [&](ValueId v, auto Segment::*ports, bool on_engine) {
    int found = 0;
    for (const Segment& segment : plan.segments) {
      if (on_engine && segment.placement != Placement::kEngine) continue;
      found += IsIn(segment.*ports, v) ? 1 : 0;
    }
    return found;
  };
  std::vector<ValueId> states, written;
  for (const Node& node : graph.nodes) {
    const RowWrite write = RowWriteOf(node);
    if (!IsIn(graph.inputs, write.past) || IsIn(graph.outputs, write.past) ||
        IsIn(states, write.past) || count(write.past, &Segment::inputs, false) != 1) {
      return DamagedWrite("a state is not only written");
    }
    if (IsIn(written, write.present)) return DamagedWrite("two nodes have one output");
    states.push_back(write.past);
    written.push_back(write.present);
    if (count(write.present, &Segment::outputs, false) != 1 ||
        count(write.present, &Segment::inputs, true) == 0) {
      return DamagedWrite("the engine does not read a state");
    }
  }
  return absl::OkStatus();
}

}  // namespace anemone
