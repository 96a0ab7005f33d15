// Replaces scaled products of integers by products of the floats that the integers represent.
//
// ONNX Runtime's quantizer writes a dynamically quantized MatMul or Conv as
//
//   MatMulInteger(q, w, zero point of q, zero point of w) [+ bias] -> Cast -> * scales
//
// in many spellings. q is made by DynamicQuantizeLinear, by QuantizeLinear with constants (static
// quantization), or by QuantizeLinear with a scale that other nodes compute (run_time_grid.h). w is
// a constant, or is made like q. The scales are multiplied first, one after the other, or are one
// constant. Up to ONNX Runtime 1.4 the bias of a Conv is in integers, before the Cast.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "anemone/compressed.h"
#include "importer/passes/match.h"
#include "importer/passes/passes.h"
#include "importer/passes/run_time_grid.h"

namespace anemone {
namespace {

// Scales are at most this many Muls away from the Cast.
constexpr int kMostMuls = 3;

// root = Cast(product [+ bias]) * factors.
struct Scaled {
  NodeId product = kNone, add = kNone, cast = kNone, root = kNone;
  ValueId bias = kNone;
  std::vector<ValueId> factors;
};

bool IsProduct(const Node* node) { return Is(node, "MatMulInteger") || Is(node, "ConvInteger"); }

NodeId ProducerId(GraphEditor& g, ValueId id) { return id == kNone ? kNone : g.value(id).producer; }

// Sets product, add and bias from the operand of the Cast. False if it is not such a sum.
bool FindSum(GraphEditor& g, ValueId sum, Scaled& found) {
  if (!g.HasOneUse(sum)) return false;
  const Node* node = g.ProducerOf(sum);
  if (IsProduct(node)) {
    found.product = ProducerId(g, sum);
    return true;
  }
  if (!Is(node, "Add")) return false;
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (!IsProduct(g.ProducerOf(node->inputs[i])) || !g.HasOneUse(node->inputs[i])) continue;
    found.product = ProducerId(g, node->inputs[i]);
    found.add = ProducerId(g, sum);
    found.bias = node->inputs[1 - i];
    return true;
  }
  return false;
}

// Takes `id` apart into factors, of which one may be the Cast. `alone` if nothing else reads the
// Muls on the way to `id`.
void Split(GraphEditor& g, ValueId id, int muls, bool alone, Scaled& found) {
  const Node* node = g.ProducerOf(id);
  alone = alone && g.HasOneUse(id);
  if (Is(node, "Mul") && muls > 0) {
    for (ValueId input : {node->inputs[0], node->inputs[1]}) {
      Split(g, input, muls - 1, alone, found);
    }
  } else if (Is(node, "Cast") && alone && found.cast == kNone &&
             g.value(id).type == DataType::kFloat && FindSum(g, node->inputs[0], found)) {
    found.cast = ProducerId(g, id);
  } else {
    found.factors.push_back(id);
  }
}

std::optional<Scaled> ScaledAt(GraphEditor& g, NodeId root) {
  Scaled found{.root = root};
  const std::vector<ValueId> inputs = g.node(root).inputs;
  for (ValueId input : inputs) Split(g, input, kMostMuls - 1, true, found);
  if (found.cast == kNone) return std::nullopt;
  const std::optional<Shape>& sum = g.value(g.node(found.cast).outputs[0]).shape;
  const std::optional<Shape>& result = g.value(g.node(root).outputs[0]).shape;
  if (!sum || !result || sum->size() != result->size()) return std::nullopt;
  return found;
}

// Removes a factor from the list, if it is there.
bool Take(const GraphEditor& g, ValueId factor, std::vector<ValueId>& factors) {
  const auto at = std::find_if(factors.begin(), factors.end(),
                               [&](ValueId id) { return SameConstant(g, id, factor); });
  if (at == factors.end()) return false;
  factors.erase(at);
  return true;
}

bool SameFactors(const GraphEditor& g, absl::Span<const ValueId> a, std::vector<ValueId> b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](ValueId id) { return Take(g, id, b); });
}

// One channel of the product's result has one scale: the axis of channels in the result (counted
// from the last one) and in the weights, and its extent.
struct Channels {
  size_t from_last = 0;
  int64_t axis = 0, extent = 0;
};

// The elements of a float or integer constant: one, or one for each channel if its shape is
// broadcast along their axis to a result of rank `rank`.
std::optional<std::vector<double>> NumbersOf(const Tensor* constant, const Channels& channels,
                                             size_t rank) {
  if (constant == nullptr || constant->dims().size() > rank) return std::nullopt;
  if (constant->elements() != 1) {
    const std::vector<int64_t>& dims = constant->dims();
    if (constant->elements() != channels.extent || dims.size() <= channels.from_last ||
        dims[dims.size() - 1 - channels.from_last] != channels.extent) {
      return std::nullopt;
    }
  }
  return ToNumbers(*constant, std::max<int64_t>(channels.extent, 1));
}

// The product of constant factors: one number, or one for each channel.
std::optional<std::vector<double>> ProductOf(const GraphEditor& g,
                                             absl::Span<const ValueId> factors,
                                             const Channels& channels, size_t rank) {
  std::vector<double> product = {1};
  for (ValueId id : factors) {
    const auto numbers = NumbersOf(g.ConstantOf(id), channels, rank);
    if (!numbers) return std::nullopt;
    if (product.size() == 1) product.resize(numbers->size(), product[0]);
    for (size_t i = 0; i < product.size(); ++i)
      product[i] *= (*numbers)[numbers->size() == 1 ? 0 : i];
  }
  return product;
}

Tensor FloatsOf(absl::Span<const double> numbers) {
  const std::vector<float> floats(numbers.begin(), numbers.end());
  return Tensor::Floats(floats.size() == 1
                            ? std::vector<int64_t>()
                            : std::vector<int64_t>{static_cast<int64_t>(floats.size())},
                        floats);
}

// The float weight that integers represent.
std::optional<Tensor> WeightOf(const Tensor& codes, const Tensor* zeros, std::vector<double> scales,
                               const Channels& channels) {
  if (!IsCodeType(codes.type())) return std::nullopt;
  const bool has_zeros = zeros != nullptr;
  if (has_zeros && zeros->elements() != 1 &&
      (zeros->elements() != channels.extent || zeros->dims().size() != 1)) {
    return std::nullopt;
  }
  // As many scales as zero points.
  if (has_zeros && zeros->elements() > 1 && scales.size() == 1) {
    scales.resize(channels.extent, scales[0]);
  }
  const Tensor scale = FloatsOf(scales);
  Tensor zero;
  if (has_zeros) {
    zero = zeros->elements() == 1 ? Tensor::Fill(zeros->type(), scale.dims(), zeros->bytes())
                                  : zeros->Reshaped(scale.dims());
  }
  const auto grid = ScaleGrid::Of(codes.dims(), scale.dims(), channels.axis, 0);
  if (!grid.ok()) return std::nullopt;
  auto made = Compressed::Affine(codes, scale, zero, *grid);
  if (!made.ok()) return std::nullopt;
  return Tensor::Of(codes.dims(), *std::move(made));
}

// A factor of the product, as a float: a value of the graph, a constant, or the result of a
// DequantizeLinear that is still to be made.
struct Operand {
  ValueId value = kNone;
  std::optional<Tensor> constant;
  std::vector<ValueId> dequantize;  // the inputs of the DequantizeLinear
  const Node* quantizer = nullptr;
};

// The operand whose integers are input `index` of the product, if a quantizer makes them at run
// time. Its scale is removed from the factors; a constant scale that is not among them is a part of
// a constant that is, so that is divided by it.
std::optional<Operand> QuantizedOperand(GraphEditor& g, const Node& product, size_t index,
                                        std::vector<ValueId>& factors, double& divisor) {
  const ValueId integers = product.inputs[index], zero = InputOr(product, index + 2);
  const Node* quantizer = g.ProducerOf(integers);
  if (Is(quantizer, "DynamicQuantizeLinear")) {
    if (integers != quantizer->outputs[0] || zero == kNone || zero != OutputOr(*quantizer, 2) ||
        OutputOr(*quantizer, 1) == kNone || !Take(g, quantizer->outputs[1], factors)) {
      return std::nullopt;
    }
    return Operand{.dequantize = quantizer->outputs, .quantizer = quantizer};
  }
  if (!Is(quantizer, "QuantizeLinear") || !SameConstant(g, zero, InputOr(*quantizer, 2))) {
    return std::nullopt;
  }
  const ValueId x = quantizer->inputs[0], scale = quantizer->inputs[1];
  if (g.value(x).type != DataType::kFloat || g.value(scale).type != DataType::kFloat ||
      !HasOneElement(g, scale)) {
    return std::nullopt;
  }
  if (!Take(g, scale, factors)) {
    const Tensor* constant = g.ConstantOf(scale);
    if (constant == nullptr) return std::nullopt;
    divisor *= ElementAsDouble(*constant, 0);
  }
  if (HasRunTimeGrid(g, *quantizer)) return Operand{.value = x};
  Operand operand{.dequantize = {integers, scale}, .quantizer = quantizer};
  if (zero != kNone) operand.dequantize.push_back(zero);
  return operand;
}

std::optional<Channels> ChannelsOf(const Node& product, size_t weight, const Tensor& codes,
                                   size_t rank) {
  const size_t own = codes.dims().size();
  if (own < 2 || rank < 2) return std::nullopt;
  if (Is(&product, "ConvInteger")) {
    if (weight != 1) return std::nullopt;
    return Channels{.from_last = rank - 2, .axis = 0, .extent = codes.dims()[0]};
  }
  const size_t from_last = weight == 1 ? 0 : 1;
  const size_t axis = own - 1 - from_last;
  return Channels{
      .from_last = from_last, .axis = static_cast<int64_t>(axis), .extent = codes.dims()[axis]};
}

// A bias before the Cast as a float, which is added after the scaling.
std::optional<Tensor> BiasOf(GraphEditor& g, const Scaled& scaled, const Channels& channels,
                             size_t rank) {
  if (const Tensor* integers = g.ConstantOf(scaled.bias); integers != nullptr) {
    const auto numbers = NumbersOf(integers, channels, rank);
    const auto scales = ProductOf(g, scaled.factors, channels, rank);
    if (!numbers || !scales) return std::nullopt;
    std::vector<float> floats(std::max(numbers->size(), scales->size()));
    for (size_t i = 0; i < floats.size(); ++i) {
      floats[i] = static_cast<float>((*numbers)[numbers->size() == 1 ? 0 : i] *
                                     (*scales)[scales->size() == 1 ? 0 : i]);
    }
    std::vector<int64_t> dims(channels.from_last + 1, 1);
    dims[0] = static_cast<int64_t>(floats.size());
    return Tensor::Floats(dims, floats);
  }
  // Reshape(Cast(Floor(bias / scales))).
  const Node* node = g.ProducerOf(scaled.bias);
  if (Is(node, "Reshape")) node = g.ProducerOf(node->inputs[0]);
  if (!Is(node, "Cast")) return std::nullopt;
  node = g.ProducerOf(node->inputs[0]);
  if (!Is(node, "Floor") && !Is(node, "Round")) return std::nullopt;
  node = g.ProducerOf(node->inputs[0]);
  const Value& value = g.value(scaled.bias);
  if (!Is(node, "Div") || !value.is_static() || value.dims().size() > rank) return std::nullopt;
  const Tensor* bias = g.ConstantOf(node->inputs[0]);
  Scaled divisor;
  Split(g, node->inputs[1], kMostMuls, false, divisor);
  const std::vector<int64_t> dims = value.dims();
  const absl::StatusOr<int64_t> elements = ElementCount(dims);
  if (bias == nullptr || bias->type() != DataType::kFloat || !elements.ok() ||
      bias->elements() != *elements || !SameFactors(g, divisor.factors, scaled.factors)) {
    return std::nullopt;
  }
  return bias->Reshaped(dims);
}

// The float form of a scaled product.
struct Floats {
  std::array<Operand, 2> operands;
  std::optional<Tensor> bias;
};

bool Near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

std::optional<Floats> FloatsFor(GraphEditor& g, const Scaled& scaled) {
  const Node& product = g.node(scaled.product);
  const size_t rank = g.value(g.node(scaled.cast).outputs[0]).shape->size();
  Floats floats;
  std::vector<ValueId> factors = scaled.factors;
  double divisor = 1;
  std::optional<size_t> weight;
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (g.ConstantOf(product.inputs[i]) != nullptr) {
      if (weight) return std::nullopt;
      weight = i;
      continue;
    }
    auto operand = QuantizedOperand(g, product, i, factors, divisor);
    if (!operand) return std::nullopt;
    floats.operands[i] = *std::move(operand);
  }
  Channels channels;
  if (weight) {
    const Tensor& codes = *g.ConstantOf(product.inputs[*weight]);
    const ValueId zero = InputOr(product, *weight + 2);
    const auto found = ChannelsOf(product, *weight, codes, rank);
    if (!found || factors.empty() || (zero != kNone && g.ConstantOf(zero) == nullptr)) {
      return std::nullopt;
    }
    channels = *found;
    auto scales = ProductOf(g, factors, channels, rank);
    if (!scales) return std::nullopt;
    for (double& scale : *scales) scale /= divisor;
    floats.operands[*weight].constant =
        WeightOf(codes, g.ConstantOf(zero), *std::move(scales), channels);
    if (!floats.operands[*weight].constant) return std::nullopt;
  } else {
    const auto left = ProductOf(g, factors, channels, rank);
    if (!left || left->size() != 1 || !Near((*left)[0], divisor)) return std::nullopt;
  }
  if (scaled.add != kNone) {
    floats.bias = BiasOf(g, scaled, channels, rank);
    if (!floats.bias) return std::nullopt;
  }
  return floats;
}

// Turns existing nodes, from the first to the last, into others. So no node is added, and the last
// one keeps its output. Finish() connects them, the last one first, so that no node is without a
// reader in between.
class Writer {
 public:
  Writer(GraphEditor& g, std::vector<NodeId> nodes) : g_(g), left_(std::move(nodes)) {
    std::reverse(left_.begin(), left_.end());
  }

  // Leaves only the last `count` nodes.
  void KeepLast(size_t count) { left_.resize(std::min(count, left_.size())); }

  // Returns the output. `like` has its shape.
  ValueId Write(const Node& from, absl::string_view op, std::vector<ValueId> inputs, ValueId like,
                std::vector<Attribute> attributes = {}) {
    const NodeId id = left_.back();
    left_.pop_back();
    Node& node = g_.node(id);
    node.name = from.name;
    node.origins = from.origins;
    node.op_type = std::string(op);
    node.attributes = std::move(attributes);
    const ValueId output = node.outputs[0];
    if (!left_.empty()) g_.Rename(output);
    g_.value(output).type = DataType::kFloat;
    g_.value(output).shape = g_.value(like).shape;
    inputs_.emplace_back(id, std::move(inputs));
    return output;
  }

  void Finish() {
    for (; !inputs_.empty(); inputs_.pop_back()) {
      g_.SetInputs(inputs_.back().first, std::move(inputs_.back().second));
    }
  }

 private:
  GraphEditor& g_;
  std::vector<NodeId> left_;  // the next one last
  std::vector<std::pair<NodeId, std::vector<ValueId>>> inputs_;
};

void WriteFloats(GraphEditor& g, const Scaled& scaled, Floats floats) {
  // Copies, because the nodes change.
  Node product = g.node(scaled.product);
  const Node cast = g.node(scaled.cast);
  const ValueId result = g.node(scaled.root).outputs[0];
  product.origins = UnionOfOrigins(product, cast);
  product.origins = UnionOfOrigins(product, g.node(scaled.root));
  std::vector<NodeId> nodes = {scaled.product};
  if (scaled.add != kNone) nodes.push_back(scaled.add);
  nodes.push_back(scaled.cast);
  nodes.push_back(scaled.root);
  Node add = scaled.add == kNone ? product : g.node(scaled.add);
  add.origins = UnionOfOrigins(add, product);
  std::vector<Node> quantizers;
  for (const Operand& operand : floats.operands) {
    quantizers.push_back(operand.quantizer == nullptr ? Node() : *operand.quantizer);
  }
  Writer writer(g, std::move(nodes));
  const size_t made = 1 + static_cast<size_t>(floats.bias.has_value());
  const auto dequantized =
      std::count_if(floats.operands.begin(), floats.operands.end(),
                    [](const Operand& operand) { return !operand.dequantize.empty(); });
  writer.KeepLast(made + static_cast<size_t>(dequantized));
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < floats.operands.size(); ++i) {
    Operand& operand = floats.operands[i];
    if (operand.constant) {
      operand.value = g.NewConstant(g.value(product.inputs[i]).name, *std::move(operand.constant));
    } else if (!operand.dequantize.empty()) {
      const ValueId integers = operand.dequantize[0];
      operand.value =
          writer.Write(quantizers[i], "DequantizeLinear", std::move(operand.dequantize), integers);
    }
    inputs.push_back(operand.value);
  }
  const ValueId bias =
      floats.bias ? g.NewConstant(g.value(scaled.bias).name, *std::move(floats.bias)) : kNone;
  const bool is_matrix = product.op_type == "MatMulInteger";
  const ValueId y = writer.Write(product, is_matrix ? "MatMul" : "Conv", std::move(inputs), result,
                                 std::move(product.attributes));
  if (bias != kNone) writer.Write(add, "Add", {y, bias}, result);
  writer.Finish();
}

}  // namespace

// Cast(MatMulInteger(q, w) + b) * (s * t) -> MatMul(DequantizeLinear(q), w') + b', where q is
// quantized with scale s, and w' is the float weight of the constant integers w with scale t. The
// same for ConvInteger, and for two operands that are quantized at run time. Requires: no other
// reader of the sum. The sum of integers was exact; the sum of floats is rounded.
absl::StatusOr<bool> WidenIntegerProduct(GraphEditor& g, NodeId id) {
  if (!Is(&g.node(id), "Mul")) return false;
  const std::optional<Scaled> scaled = ScaledAt(g, id);
  if (!scaled) return false;
  std::optional<Floats> floats = FloatsFor(g, *scaled);
  if (!floats) return false;
  WriteFloats(g, *scaled, *std::move(floats));
  return true;
}

}  // namespace anemone
