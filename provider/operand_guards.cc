#include "provider/operand_guards.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "importer/infer/no_elements.h"
#include "importer/opset/opsets.h"

namespace anemone {
namespace {

// Writes the nodes of guards. Their values have names that begin with that of a node's output.
class GuardWriter {
 public:
  GuardWriter(onnx::GraphProto& graph, std::string prefix, std::string label)
      : graph_(graph), prefix_(std::move(prefix)), label_(std::move(label)) {}

  // The value as it is. An index of 1 is beyond the only 0 of the table, and ends the run.
  std::string Guarded(const std::string& value, int axis) {
    std::string& guarded = guarded_[value];
    if (!guarded.empty()) return guarded;
    const std::string sizes = Emit("Shape", {value});
    const std::string count =
        axis == kNone ? Emit("Size", {value}) : Emit("Gather", {sizes, Number(axis, {})});
    const std::string is_empty = Emit("Equal", {count, Number(0, {})});
    const std::string index = Emit("Cast", {is_empty});
    onnx::AttributeProto& to = *nodes_.back().add_attribute();
    to.set_name("to");
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(onnx::TensorProto::INT64);
    const std::string zero = Emit("Gather", {Number(0, {1}), index});
    nodes_.back().set_name(absl::StrCat(label_, " wants at least one element of '", value,
                                        "' to make '", prefix_, "'; change the inputs"));
    guarded = Emit("Reshape", {value, Emit("Add", {sizes, zero})});
    return guarded;
  }

  std::vector<onnx::NodeProto>& nodes() { return nodes_; }

 private:
  std::string Fresh() { return absl::StrCat(prefix_, "/has-elements/", count_++); }

  std::string Emit(const char* op, const std::vector<std::string>& inputs) {
    onnx::NodeProto& node = nodes_.emplace_back();
    node.set_op_type(op);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(Fresh());
    return node.output(0);
  }

  std::string Number(int64_t value, const std::vector<int64_t>& dims) {
    onnx::TensorProto& constant = *graph_.add_initializer();
    constant.set_name(Fresh());
    constant.set_data_type(onnx::TensorProto::INT64);
    for (int64_t dim : dims) constant.add_dims(dim);
    constant.add_int64_data(value);
    return constant.name();
  }

  onnx::GraphProto& graph_;
  const std::string prefix_, label_;
  int count_ = 0;
  std::vector<onnx::NodeProto> nodes_;
  absl::flat_hash_map<std::string, std::string> guarded_;  // by the value before
};

// The first output that a node has identifies it.
std::string FirstOutput(const onnx::NodeProto& node) {
  for (const std::string& output : node.output()) {
    if (!output.empty()) return output;
  }
  return "";
}

}  // namespace

void GuardOperands(const Graph& graph, absl::Span<const NodeId> nodes, OnnxModel& model) {
  struct GuardedNode {
    const Node* node;
    std::vector<NeededOperand> operands;
  };
  absl::flat_hash_map<std::string, GuardedNode> guarded;  // by the first output
  for (NodeId id : nodes) {
    const Node& node = graph.nodes[id];
    std::vector<NeededOperand> operands = OperandsWithoutElements(graph, node);
    if (operands.empty()) continue;
    const auto first = std::find_if(node.outputs.begin(), node.outputs.end(),
                                    [](ValueId v) { return v != kNone; });
    if (first != node.outputs.end()) {
      guarded.emplace(graph.values[*first].name, GuardedNode{&node, std::move(operands)});
    }
  }
  if (guarded.empty()) return;
  onnx::GraphProto& proto = *model.proto.mutable_graph();
  onnx::GraphProto before;
  before.mutable_node()->Swap(proto.mutable_node());
  for (onnx::NodeProto& node : *before.mutable_node()) {
    const std::string name = FirstOutput(node);
    if (const auto found = guarded.find(name); found != guarded.end()) {
      const auto& [own, operands] = found->second;
      GuardWriter writer(proto, name, ShortLabel(graph, *own));
      for (const NeededOperand& operand : operands) {
        std::string& input = *node.mutable_input(static_cast<int>(operand.input));
        input = writer.Guarded(input, operand.axis);
      }
      for (onnx::NodeProto& made : writer.nodes()) *proto.add_node() = std::move(made);
    }
    *proto.add_node() = std::move(node);
  }
}

}  // namespace anemone
