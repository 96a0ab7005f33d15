// Moves DequantizeLinear next to the QuantizeLinear whose integers it reads, so that no other node
// reads integers.
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "anemone/compressed.h"
#include "importer/elements.h"
#include "importer/operators/operators.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

bool Is(const Node* node, absl::string_view op_type) {
  return node != nullptr && node->domain.empty() && node->op_type == op_type;
}

// True if the outputs are unchanged elements of the first input.
bool MovesElements(const Node& node) {
  return node.outputs.size() == 1 && OperatorOf(node).moves != Moves::kNo;
}

bool SameConstant(GraphEditor& g, ValueId a, ValueId b) {
  if (a == b) return true;
  const Tensor* first = g.ConstantOf(a);
  const Tensor* second = g.ConstantOf(b);
  return first != nullptr && second != nullptr && SameTensor(*first, *second);
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

// Cast(MatMulInteger(q(x), w)) * (scale of x * scale of w), where q is DynamicQuantizeLinear.
struct IntegerProduct {
  NodeId cast = kNone, product = kNone, quantizer = kNone;
  Tensor weight;
};

// The float weight that integers with scales and zero points represent.
std::optional<Tensor> WeightOf(const Tensor& codes, const Tensor& scales, const Tensor* zeros,
                               bool is_matrix) {
  const int64_t rank = static_cast<int64_t>(codes.dims().size());
  if (!IsCodeType(codes.type()) || scales.type() != DataType::kFloat || rank < 2) {
    return std::nullopt;
  }
  const bool one = scales.elements() == 1;
  const bool per_column = is_matrix && rank == 2 && scales.elements() == codes.dims().back();
  if (!one && (!per_column || scales.dims().size() != 1)) return std::nullopt;
  if (zeros != nullptr && zeros->elements() != scales.elements()) return std::nullopt;
  const std::vector<int64_t> dims =
      one ? std::vector<int64_t>() : std::vector<int64_t>{scales.elements()};
  const auto grid = ScaleGrid::Of(codes.dims(), dims, rank - 1, 0);
  if (!grid.ok()) return std::nullopt;
  auto made = Compressed::Affine(codes, scales.Reshaped(dims),
                                 zeros == nullptr ? Tensor() : zeros->Reshaped(dims), *grid);
  if (!made.ok()) return std::nullopt;
  return Tensor::Of(codes.dims(), *std::move(made));
}

std::optional<IntegerProduct> ProductOf(GraphEditor& g, ValueId cast_output, ValueId scale) {
  const Node* cast = g.ProducerOf(cast_output);
  if (!Is(cast, "Cast") || !g.HasOneUse(cast_output)) return std::nullopt;
  const Node* product = g.ProducerOf(cast->inputs[0]);
  const bool is_matrix = Is(product, "MatMulInteger");
  if (!is_matrix && !Is(product, "ConvInteger")) return std::nullopt;
  const Node* quantizer = g.ProducerOf(product->inputs[0]);
  const Node* scales = g.ProducerOf(scale);
  if (!g.HasOneUse(cast->inputs[0]) || !Is(quantizer, "DynamicQuantizeLinear") ||
      !Is(scales, "Mul") || InputOr(*product, 2) != OutputOr(*quantizer, 2) ||
      product->inputs[0] != quantizer->outputs[0]) {
    return std::nullopt;
  }
  const bool first = scales->inputs[0] == OutputOr(*quantizer, 1);
  if (!first && scales->inputs[1] != OutputOr(*quantizer, 1)) return std::nullopt;
  const Tensor* weight_scale = g.ConstantOf(scales->inputs[first ? 1 : 0]);
  const Tensor* codes = g.ConstantOf(product->inputs[1]);
  const Tensor* zeros = g.ConstantOf(InputOr(*product, 3));
  if (weight_scale == nullptr || codes == nullptr) return std::nullopt;
  if (zeros == nullptr && InputOr(*product, 3) != kNone) return std::nullopt;
  auto weight = WeightOf(*codes, *weight_scale, zeros, is_matrix);
  if (!weight) return std::nullopt;
  const auto id_of = [&](ValueId value) { return g.value(value).producer; };
  return IntegerProduct{id_of(cast_output), id_of(cast->inputs[0]), id_of(product->inputs[0]),
                        *std::move(weight)};
}

}  // namespace

// Cast(MatMulInteger(q, w)) * (s * t) -> MatMul(DequantizeLinear(q), w'), where q and s are the
// integers and scale of a DynamicQuantizeLinear, and w' is the float weight of the constant
// integers w with scale t. The same for ConvInteger. Requires: no other reader of the intermediate
// values. The sum of integers was exact; the sum of floats is rounded.
absl::StatusOr<bool> WidenIntegerProduct(GraphEditor& g, NodeId id) {
  if (!Is(&g.node(id), "Mul")) return false;
  for (size_t i : {size_t{0}, size_t{1}}) {
    const ValueId cast_output = g.node(id).inputs[i];
    auto found = ProductOf(g, cast_output, g.node(id).inputs[1 - i]);
    if (!found || g.value(cast_output).type != DataType::kFloat) continue;
    const Node& quantizer = g.node(found->quantizer);
    Node& dequantize = g.node(found->product);
    Node& product = g.node(found->cast);
    const ValueId widened = dequantize.outputs[0];
    product.origins = UnionOfOrigins(product, dequantize);
    product.origins = UnionOfOrigins(product, g.node(id));
    product.name = dequantize.name;
    product.op_type = dequantize.op_type == "MatMulInteger" ? "MatMul" : "Conv";
    product.attributes = std::exchange(dequantize.attributes, {});
    dequantize.op_type = "DequantizeLinear";
    dequantize.origins = quantizer.origins;
    dequantize.name = quantizer.name;
    g.value(widened).type = DataType::kFloat;
    g.value(widened).shape = g.value(quantizer.inputs[0]).shape;
    const ValueId weight =
        g.NewConstant(g.value(dequantize.inputs[1]).name, std::move(found->weight));
    g.SetInputs(found->product, quantizer.outputs);
    g.SetInputs(found->cast, {widened, weight});
    g.Bypass(id, cast_output);
    return true;
  }
  return false;
}

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
