#include "importer/infer/trips.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/bool_element.h"
#include "importer/edit.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

size_t ScannedOf(const Node& node) {
  const int64_t scanned = IntOr(node, "num_scan_inputs", 0);
  const auto inputs = static_cast<int64_t>(node.inputs.size());
  return scanned >= 1 && scanned <= inputs ? static_cast<size_t>(scanned) : 0;
}

std::vector<int64_t> IntsOrZeros(const Node& node, absl::string_view name, size_t count) {
  std::vector<int64_t> ints = IntsOf(node, name).value_or(std::vector<int64_t>());
  ints.resize(count);
  return ints;
}

std::optional<bool> ConstantBool(const Graph& graph, ValueId id) {
  const std::optional<Tensor>& constant = graph.values[id].constant;
  if (!constant || !IsOneBool(*constant)) return std::nullopt;
  return BoolAt(*constant, 0);
}

// True if the condition is still true after the body if it was true before it.
bool StaysTrue(const Graph& body) {
  ValueId id = body.outputs[0];
  while (id != body.inputs[1]) {
    const NodeId producer = body.values[id].producer;
    if (producer == kNone) return ConstantBool(body, id).value_or(false);
    const Node& node = body.nodes[producer];
    if (!node.domain.empty() || node.op_type != "Identity") return false;
    id = node.inputs[0];
  }
  return true;
}

std::optional<int64_t> LoopTrips(const Graph& graph, const Node& node, const Graph& body) {
  if (HasInput(node, 1)) {
    const std::optional<bool> starts = ConstantBool(graph, node.inputs[1]);
    if (!starts.has_value()) return std::nullopt;
    if (!*starts) return 0;
  }
  if (!HasInput(node, 0)) return std::nullopt;
  const std::optional<Tensor>& trips = graph.values[node.inputs[0]].constant;
  if (!trips || trips->type() != DataType::kInt64 || trips->elements() != 1) return std::nullopt;
  const int64_t count = std::max<int64_t>(0, trips->at<int64_t>(0));
  return count == 0 || StaysTrue(body) ? std::optional<int64_t>(count) : std::nullopt;
}

std::optional<int64_t> ScanTrips(const Graph& graph, const Node& node) {
  const std::vector<int64_t> axes = ScanInputAxes(node);
  std::optional<int64_t> trips;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Value& value = graph.values[node.inputs[CarriedOf(node) + i]];
    if (!value.shape.has_value()) return std::nullopt;
    const auto rank = static_cast<int64_t>(value.shape->size());
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank || !(*value.shape)[axis].known()) return std::nullopt;
    const int64_t size = (*value.shape)[axis].size;
    if (trips.has_value() && *trips != size) return std::nullopt;
    trips = size;
  }
  return trips;
}

}  // namespace

const Graph* LoopBodyOf(const Node& node) {
  const bool is_loop = node.op_type == "Loop";
  // Before opset 9 the first input of a Scan was the lengths of the sequences.
  const bool is_scan = node.op_type == "Scan" && node.version >= 9;
  if (!node.domain.empty() || (!is_loop && !is_scan)) return nullptr;
  const Attribute* attribute = node.FindAttribute("body");
  if (attribute == nullptr || BodiesOf(node).size() != 1) return nullptr;
  const auto* held = std::get_if<Attribute::GraphPtr>(&attribute->value);
  if (held == nullptr) return nullptr;
  const Graph& body = **held;
  if (body.inputs.size() != node.inputs.size()) return nullptr;
  if (body.outputs.size() != node.outputs.size() + (is_loop ? 1 : 0)) return nullptr;
  if (is_loop ? node.inputs.size() < 2 : ScannedOf(node) == 0) return nullptr;
  if (CarriedOf(node) > node.outputs.size()) return nullptr;
  for (size_t i = is_loop ? 2 : 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) return nullptr;
  }
  return &body;
}

std::optional<int64_t> TripsOf(const Graph& graph, const Node& node) {
  const Graph* body = LoopBodyOf(node);
  if (body == nullptr) return std::nullopt;
  return node.op_type == "Loop" ? LoopTrips(graph, node, *body) : ScanTrips(graph, node);
}

bool HasOptionalPorts(const Graph& body) {
  const auto is_optional = [&](ValueId id) { return TypeOf(body.values[id]).has_optional_type(); };
  return std::any_of(body.inputs.begin(), body.inputs.end(), is_optional) ||
         std::any_of(body.captures.begin(), body.captures.end(), is_optional) ||
         std::any_of(body.outputs.begin(), body.outputs.end(), is_optional);
}

size_t CarriedOf(const Node& node) {
  return node.op_type == "Loop" ? node.inputs.size() - 2 : node.inputs.size() - ScannedOf(node);
}

std::vector<int64_t> ScanInputAxes(const Node& node) {
  return IntsOrZeros(node, "scan_input_axes", ScannedOf(node));
}

std::vector<int64_t> ScanOutputAxes(const Node& node) {
  return IntsOrZeros(node, "scan_output_axes", node.outputs.size() - CarriedOf(node));
}

std::vector<int64_t> ScanInputDirections(const Node& node) {
  return IntsOrZeros(node, "scan_input_directions", ScannedOf(node));
}

std::vector<int64_t> ScanOutputDirections(const Node& node) {
  return IntsOrZeros(node, "scan_output_directions", node.outputs.size() - CarriedOf(node));
}

}  // namespace anemone
