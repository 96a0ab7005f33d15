#include "importer/infer/no_elements.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {
namespace {

constexpr int kAllAxes = kNone;

bool IsProduct(absl::string_view op) { return op == "Einsum" || op == "MatMul"; }

// Sets has_none or may_have_none.
NeededOperand Judge(const Graph& graph, const Node& node, size_t input, int axis) {
  NeededOperand operand{.input = input, .axis = axis};
  const Value& value = graph.values[node.inputs[input]];
  if (!value.shape.has_value()) {
    operand.may_have_none = true;
    return operand;
  }
  for (size_t i = 0; i < value.shape->size(); ++i) {
    if (axis != kAllAxes && static_cast<int>(i) != axis) continue;
    const Dim& dim = (*value.shape)[i];
    operand.has_none |= dim.size == 0;
    operand.may_have_none |= !dim.known();
  }
  return operand;
}

// The operands that ONNX Runtime needs elements of.
std::vector<NeededOperand> Judged(const Graph& graph, const Node& node) {
  std::vector<NeededOperand> judged;
  const auto judge = [&](size_t input, int axis) {
    if (HasInput(node, input)) judged.push_back(Judge(graph, node, input, axis));
  };
  if (!NeedsElements(node)) return judged;
  if (node.op_type == "GRU") judge(0, kAllAxes);
  if (node.op_type == "LSTM") judge(0, 1);
  if (IsProduct(node.op_type)) {
    const bool is_matmul = node.op_type == "MatMul";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!HasInput(node, i)) continue;
      const auto& shape = graph.values[node.inputs[i]].shape;
      if (is_matmul && (!shape.has_value() || shape->size() != 1)) continue;  // a matrix
      judge(i, kAllAxes);
    }
  }
  return judged;
}

}  // namespace

bool NeedsElements(const Node& node) {
  return node.domain.empty() &&
         (node.op_type == "GRU" || node.op_type == "LSTM" || IsProduct(node.op_type));
}

std::vector<NeededOperand> OperandsWithoutElements(const Graph& graph, const Node& node) {
  std::vector<NeededOperand> found = Judged(graph, node);
  std::erase_if(found, [](const NeededOperand& operand) {
    return !operand.has_none && !operand.may_have_none;
  });
  return found;
}

std::vector<Tensor> ComputeFromNothing(const Graph& graph, const Node& node) {
  const std::vector<NeededOperand> operands = Judged(graph, node);
  const bool has_none = std::any_of(operands.begin(), operands.end(),
                                    [](const NeededOperand& operand) { return operand.has_none; });
  if (!has_none) return {};
  std::vector<Tensor> made(node.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    const Value& output = graph.values[node.outputs[i]];
    if (!output.is_static() || output.type == DataType::kUndefined) return {};
    const std::vector<int64_t> dims = output.dims();
    const bool is_empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    if (!is_empty && !IsProduct(node.op_type)) return {};
    if (!ElementCount(dims).ok()) return {};  // whoever reads it says so
    const std::array<std::byte, sizeof(double)> zero{};
    made[i] =
        Tensor::Fill(output.type, dims, absl::MakeConstSpan(zero).first(BitsOf(output.type) / 8));
  }
  return made;
}

}  // namespace anemone
