// Moves DequantizeLinear next to the QuantizeLinear whose integers it reads, so that no other node
// reads integers.
#include <set>
#include <utility>
#include <vector>

#include "importer/elements.h"
#include "importer/operators/operators.h"
#include "importer/passes/match.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

// True if the outputs are unchanged elements of the first input.
bool MovesElements(const Node& node) {
  return node.outputs.size() == 1 && OperatorOf(node).moves != Moves::kNo;
}

// True if the node has one constant scale above 0 and a constant zero point or none. Then all
// elements have the same grid of values, which preserves the order of the integers.
bool IsOfTensor(GraphEditor& g, const Node& node) {
  const Tensor* scale = g.ConstantOf(InputOr(node, 1));
  if (scale == nullptr || scale->elements() != 1 || !IsFloating(scale->type())) return false;
  if (!(ElementAsDouble(*scale, 0) > 0)) return false;
  const ValueId zero = InputOr(node, 2);
  return zero == kNone || g.ConstantOf(zero) != nullptr;
}

bool SameGrid(GraphEditor& g, const Node& a, const Node& b) {
  return SameConstant(g, InputOr(a, 1), InputOr(b, 1)) &&
         SameConstant(g, InputOr(a, 2), InputOr(b, 2));
}

bool SameAttributes(const Node& a, const Node& b) {
  return IntOr(a, "axis", 1) == IntOr(b, "axis", 1) &&
         IntOr(a, "block_size", 0) == IntOr(b, "block_size", 0) &&
         IntOr(a, "output_dtype", 0) == IntOr(b, "output_dtype", 0);
}

}  // namespace

// Replaces equal DequantizeLinear nodes of the same integers by the first one.
absl::StatusOr<bool> MergeDequantize(GraphEditor& g, NodeId id) {
  const Node& first = g.node(id);
  if (!Is(&first, "DequantizeLinear") || g.UsesOf(first.inputs[0]) < 2) return false;
  const absl::Span<const NodeId> readers = g.ReadersOf(first.inputs[0]);
  bool changed = false;
  for (NodeId other : std::set<NodeId>(readers.begin(), readers.end())) {
    const Node& node = g.node(other);
    const bool reads_it = Is(&node, "DequantizeLinear") && node.inputs[0] == first.inputs[0];
    if (!reads_it || other <= id || !g.alive(other)) continue;
    if (SameGrid(g, first, node) && SameAttributes(first, node)) {
      changed |= g.Bypass(other, first.outputs[0]);
    }
  }
  return changed;
}

// DequantizeLinear(move(q)) -> move(DequantizeLinear(q)). Requires: one scale for all elements, so
// that their position does not matter, and a scale above 0, so that the maximum (MaxPool) stays the
// maximum.
absl::StatusOr<bool> MoveDequantize(GraphEditor& g, NodeId id) {
  if (!Is(&g.node(id), "DequantizeLinear") || !IsOfTensor(g, g.node(id))) return false;
  const ValueId moved = g.node(id).inputs[0];
  if (!g.HasOneUse(moved) || g.ProducerOf(moved) == nullptr) return false;
  const NodeId first = g.value(moved).producer;
  const ValueId from = g.node(first).inputs[0];
  if (!MovesElements(g.node(first)) || g.ConstantOf(from) != nullptr) return false;
  std::vector<ValueId> mover_inputs = g.node(first).inputs;
  std::vector<ValueId> inputs = g.node(id).inputs;
  mover_inputs[0] = moved;
  inputs[0] = from;
  std::swap(g.node(first), g.node(id));
  std::swap(g.node(first).inputs, g.node(id).inputs);
  std::swap(g.node(first).outputs, g.node(id).outputs);
  g.Rename(moved);
  g.value(moved).type = g.value(g.node(id).outputs[0]).type;
  g.value(moved).shape = g.value(from).shape;
  g.SetInputs(id, std::move(mover_inputs));
  g.SetInputs(first, std::move(inputs));
  return true;
}

// DequantizeLinear(QuantizeLinear(move(DequantizeLinear(q)))) -> move(DequantizeLinear(q)), if all
// have the same scale and zero point: dequantized values do not change if quantized again. A Relu
// is allowed like a move, since 0 is exact for every scale.
absl::StatusOr<bool> DropRequantize(GraphEditor& g, NodeId id) {
  const Node& second = g.node(id);
  if (!Is(&second, "DequantizeLinear") || !IsOfTensor(g, second)) return false;
  const Node* quantize = g.ProducerOf(second.inputs[0]);
  if (!Is(quantize, "QuantizeLinear") || !SameGrid(g, second, *quantize)) return false;
  const Node* first = g.ProducerOf(quantize->inputs[0]);
  while (first != nullptr && (MovesElements(*first) || Is(first, "Relu"))) {
    first = g.ProducerOf(first->inputs[0]);
  }
  if (!Is(first, "DequantizeLinear") || !SameGrid(g, second, *first)) return false;
  if (g.value(first->inputs[0]).type != g.value(second.inputs[0]).type) return false;
  const ValueId float_input = quantize->inputs[0];
  if (g.value(float_input).type != g.value(second.outputs[0]).type) return false;
  return g.Bypass(id, float_input);
}

}  // namespace anemone
