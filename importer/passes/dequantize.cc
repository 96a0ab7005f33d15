// Moves DequantizeLinear next to the QuantizeLinear whose integers it reads, so that no other node
// reads integers, and removes what changes nothing next to such pairs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "importer/elements.h"
#include "importer/operators/intervals.h"
#include "importer/operators/operators.h"
#include "importer/passes/match.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

// Whether a Pad extends its input by a number; it copies elements otherwise.
bool PadsWithNumber(const Node& node) {
  return Is(&node, "Pad") && StringOr(node, "mode", "constant") == "constant";
}

// If the used outputs are unchanged elements of the first input, and perhaps a known number among
// them, which a Pad adds: the number, or 0.
std::optional<double> MovedWith(GraphEditor& g, const Node& node) {
  if (Is(&node, "Resize")) {
    const bool moves = StringOr(node, "mode", "nearest") == "nearest" &&
                       StringOr(node, "coordinate_transformation_mode", "") != "tf_crop_and_resize";
    return moves ? std::optional(0.0) : std::nullopt;
  }
  if (PadsWithNumber(node) && InputOr(node, 2) != kNone) {
    const Tensor* number = g.ConstantOf(node.inputs[2]);
    if (number == nullptr || number->elements() != 1) return std::nullopt;
    const auto numbers = ToNumbers(*number, 1);
    return numbers.has_value() ? std::optional(numbers->front()) : std::nullopt;
  }
  const Moves moves = OperatorOf(node).moves;
  const bool is_move = Is(&node, "Pad") || moves == Moves::kByShape ||
                       (moves != Moves::kNo && node.outputs.size() == 1);
  return is_move ? std::optional(0.0) : std::nullopt;
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

// The axis means nothing if there is one scale.
bool SameAttributes(GraphEditor& g, const Node& a, const Node& b) {
  const bool same_axis = IntOr(a, "axis", 1) == IntOr(b, "axis", 1) ||
                         (HasOneElement(g, a.inputs[1]) && HasOneElement(g, b.inputs[1]));
  return same_axis && IntOr(a, "block_size", 0) == IntOr(b, "block_size", 0) &&
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
    if (SameGrid(g, first, node) && SameAttributes(g, first, node)) {
      changed |= g.Bypass(other, first.outputs[0]);
    }
  }
  return changed;
}

namespace {

bool KeepsGrid(GraphEditor& g, const Node& node) {
  return Is(&node, "Relu") || MovedWith(g, node) == 0;
}

// The DequantizeLinear nodes that are the only readers of the outputs of node `mover`, by output:
// kNone for an unused one. nullopt if an output has other readers, or if they are not all like
// `first`, the first of them.
std::optional<std::vector<NodeId>> ReadersOfMoved(GraphEditor& g, NodeId mover, NodeId first) {
  std::vector<NodeId> found;
  for (ValueId moved : g.node(mover).outputs) {
    NodeId& reader = found.emplace_back(kNone);
    if (moved == kNone || g.UsesOf(moved) == 0) continue;
    if (!g.HasOneUse(moved)) return std::nullopt;
    for (NodeId id : g.ReadersOf(moved)) {
      const Node& node = g.node(id);
      const bool reads_it = g.alive(id) && Is(&node, "DequantizeLinear") && node.inputs[0] == moved;
      if (reads_it && id >= first && SameGrid(g, node, g.node(first)) &&
          SameAttributes(g, node, g.node(first))) {
        reader = id;
      }
    }
    if (reader == kNone) return std::nullopt;
  }
  return found;
}

// Replaces the integer with which a Pad extends integers by the dequantized number.
bool DequantizeAdded(GraphEditor& g, const Node& dequantize, double added,
                     std::vector<ValueId>& pad_inputs) {
  const Tensor& scale = *g.ConstantOf(dequantize.inputs[1]);
  const ValueId zero = InputOr(dequantize, 2);
  const auto zeros = zero == kNone ? std::vector<double>{0} : ToNumbers(*g.ConstantOf(zero), 1);
  if (!zeros.has_value()) return false;
  const double number = (added - zeros->front()) * ElementAsDouble(scale, 0);
  pad_inputs.resize(std::max<size_t>(pad_inputs.size(), 3), kNone);
  pad_inputs[2] = g.NewConstant("pad", FromDoubles(scale.type(), {}, {number}));
  return true;
}

}  // namespace

// DequantizeLinear(move(q)) -> move(DequantizeLinear(q)), also for a Split all of whose outputs are
// dequantized. Requires: one scale for all elements, so that their position does not matter, and a
// scale above 0, so that the maximum (MaxPool) stays the maximum.
absl::StatusOr<bool> MoveDequantize(GraphEditor& g, NodeId id) {
  if (!Is(&g.node(id), "DequantizeLinear") || !IsOfTensor(g, g.node(id))) return false;
  const ValueId moved = g.node(id).inputs[0];
  if (g.ProducerOf(moved) == nullptr) return false;
  const NodeId first = g.value(moved).producer;
  const auto added = MovedWith(g, g.node(first));
  if (!added.has_value()) return false;
  const ValueId from = g.node(first).inputs[0];
  const auto readers = ReadersOfMoved(g, first, id);
  if (!readers.has_value() || g.ConstantOf(from) != nullptr) return false;
  std::vector<ValueId> mover_inputs = g.node(first).inputs;
  std::vector<ValueId> inputs = g.node(id).inputs;
  mover_inputs[0] = moved;
  inputs[0] = from;
  if (PadsWithNumber(g.node(first)) && !DequantizeAdded(g, g.node(id), *added, mover_inputs)) {
    return false;
  }
  // The two nodes change places, so that the order of the nodes stays right: node `first` becomes
  // the DequantizeLinear and writes `moved`, which now has the elements of `from` as floats, and
  // node `id` becomes the mover. The swaps exchange everything except inputs and outputs: the graph
  // knows the readers of a value by their ids, so that SetInputs() has to see the old inputs.
  const ValueId written = g.node(id).outputs[0];
  const DataType type = g.value(written).type;
  std::vector<ValueId> outputs = std::exchange(g.node(first).outputs, {moved});
  std::swap(g.node(first), g.node(id));
  std::swap(g.node(first).inputs, g.node(id).inputs);
  std::swap(g.node(first).outputs, g.node(id).outputs);
  g.Rename(moved);
  g.value(moved).type = type;
  g.value(moved).shape = g.value(from).shape;
  g.SetInputs(id, std::move(mover_inputs));
  g.SetInputs(first, std::move(inputs));
  // The mover writes what the DequantizeLinear nodes wrote.
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NodeId reader = (*readers)[i];
    if (reader == id) {
      outputs[i] = written;
    } else if (reader != kNone) {
      g.value(outputs[i]).producer = kNone;
      outputs[i] = g.node(reader).outputs[0];
      g.node(first).origins = UnionOfOrigins(g.node(first), g.node(reader));
      g.Erase(reader);
    } else if (outputs[i] != kNone) {
      g.Rename(outputs[i]);
      g.value(outputs[i]).type = type;
    }
    if (outputs[i] != kNone) g.value(outputs[i]).producer = id;
  }
  g.node(id).outputs = std::move(outputs);
  return true;
}

// DequantizeLinear(QuantizeLinear(move(DequantizeLinear(q)))) -> move(DequantizeLinear(q)), if all
// have the same scale and zero point: dequantized values do not change if quantized again. A Relu
// and a Pad with zeros are allowed like a move, since 0 is exact for every scale.
absl::StatusOr<bool> DropRequantize(GraphEditor& g, NodeId id) {
  const Node& second = g.node(id);
  if (!Is(&second, "DequantizeLinear") || !IsOfTensor(g, second)) return false;
  const Node* quantize = g.ProducerOf(second.inputs[0]);
  if (!Is(quantize, "QuantizeLinear") || !SameGrid(g, second, *quantize)) return false;
  const Node* first = g.ProducerOf(quantize->inputs[0]);
  while (first != nullptr && KeepsGrid(g, *first)) first = g.ProducerOf(first->inputs[0]);
  if (!Is(first, "DequantizeLinear") || !SameGrid(g, second, *first)) return false;
  if (g.value(first->inputs[0]).type != g.value(second.inputs[0]).type) return false;
  const ValueId float_input = quantize->inputs[0];
  if (g.value(float_input).type != g.value(second.outputs[0]).type) return false;
  return g.Bypass(id, float_input);
}

namespace {

// The numbers to which a Relu or Clip limits its input; nullopt for other nodes, and if they are
// not constant.
std::optional<std::pair<double, double>> ClipOf(GraphEditor& g, const Node& node) {
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  if (Is(&node, "Relu")) return std::pair(0.0, kEndless);
  if (!Is(&node, "Clip")) return std::nullopt;
  double bounds[] = {-kEndless, kEndless};
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (!HasInput(node, i)) continue;
    const Tensor* bound = g.ConstantOf(node.inputs[i]);
    if (bound == nullptr || bound->elements() != 1 || !IsFloating(bound->type())) {
      return std::nullopt;
    }
    bounds[i - 1] = ElementAsDouble(*bound, 0);
  }
  return std::pair(bounds[0], bounds[1]);
}

}  // namespace

// QuantizeLinear(Clip(x)) -> QuantizeLinear(x), also for Relu. Requires: the bounds are quantized
// to the ends of the grid, which limits x itself; no other reader. Keeps: origins of both.
absl::StatusOr<bool> DropQuantizedClip(GraphEditor& g, NodeId id) {
  Node& quantize = g.node(id);
  if (!Is(&quantize, "QuantizeLinear") || !IsOfTensor(g, quantize)) return false;
  const Node* clip = g.ProducerOf(quantize.inputs[0]);
  if (clip == nullptr || !g.HasOneUse(quantize.inputs[0])) return false;
  const auto bounds = ClipOf(g, *clip);
  const auto limits = LimitsOf(g.value(quantize.outputs[0]).type);
  if (!bounds.has_value() || !limits.has_value()) return false;
  const double scale = ElementAsDouble(*g.ConstantOf(quantize.inputs[1]), 0);
  const ValueId zero = InputOr(quantize, 2);
  const auto zeros = zero == kNone ? std::vector<double>{0} : ToNumbers(*g.ConstantOf(zero), 1);
  if (!zeros.has_value()) return false;
  const auto code = [&](double bound) { return std::nearbyint(bound / scale) + zeros->front(); };
  const bool is_repeated = code(bounds->first) <= static_cast<double>(limits->low) &&
                           code(bounds->second) >= static_cast<double>(limits->high);
  if (!is_repeated) return false;  // or a bound is NaN
  quantize.origins = UnionOfOrigins(*clip, quantize);
  g.SetInput(id, 0, clip->inputs[0]);
  return true;
}

// Where(IsNaN(x), y, x) -> x, if x is dequantized: integers are never NaN. Exporters write this
// after the softmax of an attention.
absl::StatusOr<bool> DropNanGuard(GraphEditor& g, NodeId id) {
  const Node& where = g.node(id);
  if (!Is(&where, "Where")) return false;
  const Node* guard = g.ProducerOf(where.inputs[0]);
  const ValueId x = where.inputs[2];
  if (!Is(guard, "IsNaN") || guard->inputs[0] != x) return false;
  const Value& from = g.value(x);
  const Value& to = g.value(where.outputs[0]);
  if (!from.is_static() || !to.is_static() || from.dims() != to.dims()) return false;
  const Node* made = g.ProducerOf(x);
  while (made != nullptr && MovedWith(g, *made) == 0) made = g.ProducerOf(made->inputs[0]);
  if (!Is(made, "DequantizeLinear") || !IsOfTensor(g, *made)) return false;
  if (!std::isfinite(ElementAsDouble(*g.ConstantOf(made->inputs[1]), 0))) return false;
  return g.Bypass(id, x);
}

}  // namespace anemone
