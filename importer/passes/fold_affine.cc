// Folds scales and shifts of whole channels into the weights and bias of the layer before them, or
// of the convolution after them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/float_scan.h"
#include "base/fp16.h"
#include "importer/elements.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

// More channels than any layer has. The limit prevents overflow by malicious sizes.
constexpr int64_t kMostChannels = int64_t{1} << 20;

// y[channel] = x[channel] * scale[channel] + shift[channel]. An empty list means no scale or shift.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
};

// A Conv, ConvTranspose or Gemm with constant weights, and without bias or with a constant bias per
// channel; or a BatchNormalization, whose weights are its scale.
struct Layer {
  NodeId id = kNone;
  const Tensor* weight = nullptr;
  std::vector<double> bias;  // empty if there is none
  int64_t channels = 0;
  int64_t row = 0;                      // number of consecutive weights of one channel
  std::vector<int64_t> channel_of_row;  // empty: row i is channel i % channels
};

// Sets the layout of the weights: channels, row and channel_of_row. False for an unknown form.
bool LayOut(const Node& node, Layer& layer) {
  const std::vector<int64_t>& dims = layer.weight->dims();
  if (dims.empty() || layer.weight->elements() == 0) return false;
  if (node.op_type == "BatchNormalization") {
    layer.channels = dims[0];
    layer.row = 1;
    return dims.size() == 1 && layer.channels <= kMostChannels;
  }
  if (dims.size() < 2) return false;
  if (node.op_type == "Conv") {
    layer.channels = dims[0];
    layer.row = layer.weight->elements() / dims[0];
  } else if (node.op_type == "Gemm") {
    if (dims.size() != 2) return false;
    const bool transposed = IntOr(node, "transB", 0) != 0;
    layer.channels = dims[transposed ? 0 : 1];
    layer.row = transposed ? dims[1] : 1;
  } else if (node.op_type == "ConvTranspose") {
    const int64_t group = IntOr(node, "group", 1);
    if (group <= 0 || dims[0] % group != 0 || dims[1] > kMostChannels / group) return false;
    layer.channels = dims[1] * group;
    layer.row = layer.weight->elements() / (dims[0] * dims[1]);
    if (group > 1) {
      for (int64_t i = 0; i < dims[0] * dims[1]; ++i) {
        const int64_t of_group = i / dims[1] / (dims[0] / group);
        layer.channel_of_row.push_back(of_group * dims[1] + i % dims[1]);
      }
    }
  } else {
    return false;
  }
  return layer.channels <= kMostChannels;
}

bool ReadBias(GraphEditor& g, const Node& node, Layer& layer) {
  if (node.op_type == "Gemm" && FloatOr(node, "beta", 1) != 1) return false;
  const ValueId id = InputOr(node, 2);
  if (id == kNone) return true;
  const Tensor* bias = g.ConstantOf(id);
  if (bias == nullptr || bias->dims().size() > 1) return false;
  if (bias->elements() != 1 && bias->elements() != layer.channels) return false;
  auto values = ToDoubles(*bias, kMostChannels);
  if (!values.has_value()) return false;
  layer.bias = *std::move(values);
  layer.bias.resize(layer.channels, layer.bias[0]);
  return true;
}

// The layer that computes `id`, if `id` has only one reader.
std::optional<Layer> LayerBefore(GraphEditor& g, ValueId id) {
  const Node* node = g.ProducerOf(id);
  if (node == nullptr || !node->domain.empty() || !g.HasOneUse(id)) return std::nullopt;
  Layer layer;
  layer.id = g.value(id).producer;
  if (node->inputs.size() < 2 || node->outputs.size() != 1) return std::nullopt;
  layer.weight = g.ConstantOf(node->inputs[1]);
  if (layer.weight == nullptr || !IsFloating(layer.weight->type())) return std::nullopt;
  if (!LayOut(*node, layer) || !ReadBias(g, *node, layer)) return std::nullopt;
  return layer;
}

bool AllFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool FitHalf(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::fabs(value) <= fp16::kLargest; });
}

// The weights that become subnormal or too large in fp16.
FloatsLost LostWeights(const Tensor& before, const Tensor& after) {
  const int64_t count = after.elements();
  if (after.type() == DataType::kFloat && !before.is_fill()) {
    return CountLost(before.bytes().data(), after.bytes().data(), count, fp16::kSmallestNormal,
                     fp16::kLargest);
  }
  FloatsLost lost;
  for (int64_t i = 0; i < count; ++i) {
    const double was = std::fabs(ElementAsDouble(before, i));
    const double now = std::fabs(ElementAsDouble(after, i));
    lost.below += now < fp16::kSmallestNormal && was >= fp16::kSmallestNormal ? 1 : 0;
    lost.above += now > fp16::kLargest && was <= fp16::kLargest ? 1 : 0;
  }
  return lost;
}

// True if scaling makes more than an eighth of the weights subnormal in fp16, which the engine may
// treat as zero (numerics.json st-subnormal-mac), or makes a weight too large for fp16.
bool LosesWeights(const Tensor& before, const Tensor& after) {
  const int64_t count = after.elements();
  if (after.is_fill() || count == 0) return false;
  const FloatsLost lost = LostWeights(before, after);
  return lost.above > 0 || lost.below > count / 8;
}

// The scale and shift of a BatchNormalization with this scale and bias and its constant statistics.
// The engine gets the normalization in this form.
std::optional<Affine> NormAffine(GraphEditor& g, const Node& norm, const Tensor& scale,
                                 const std::vector<double>& bias) {
  const size_t channels = bias.size();
  std::vector<double> statistics[2];
  for (size_t i = 0; i < 2; ++i) {
    const Tensor* constant = g.ConstantOf(InputOr(norm, 3 + i));
    if (constant == nullptr) return std::nullopt;
    auto values = ToDoubles(*constant, kMostChannels);
    if (!values.has_value() || values->size() != channels) return std::nullopt;
    statistics[i] = *std::move(values);
  }
  const auto& [mean, variance] = statistics;
  const double epsilon = FloatOr(norm, "epsilon", 1e-5f);
  Affine affine;
  for (size_t c = 0; c < channels; ++c) {
    const double gain =
        ElementAsDouble(scale, static_cast<int64_t>(c)) / std::sqrt(variance[c] + epsilon);
    affine.scale.push_back(gain);
    affine.shift.push_back(bias[c] - mean[c] * gain);
  }
  return affine;
}

bool NormFitsHalf(GraphEditor& g, const Node& norm, const Tensor& scale,
                  const std::vector<double>& bias) {
  const std::optional<Affine> affine = NormAffine(g, norm, scale, bias);
  return affine && FitHalf(affine->scale) && FitHalf(affine->shift);
}

// Makes `layer` apply `affine` too, and removes node `id`, which did so. The arithmetic is in
// double, rounded once to the weights' type. False if the layer cannot express the result.
bool Apply(GraphEditor& g, const Layer& layer, Affine affine, NodeId id) {
  if (!AllFinite(affine.scale) || !AllFinite(affine.shift)) return false;
  const DataType type = layer.weight->type();
  const Node& node = g.node(layer.id);
  const std::string name = g.value(node.inputs[1]).name;
  std::vector<double> bias = layer.bias;
  std::optional<Tensor> weight;
  if (!affine.scale.empty()) {
    for (size_t i = 0; i < bias.size(); ++i) bias[i] *= affine.scale[i];
    std::vector<double> factors;
    for (int64_t channel : layer.channel_of_row) factors.push_back(affine.scale[channel]);
    if (factors.empty()) factors = affine.scale;
    weight = ScaleRows(*layer.weight, layer.row, factors);
    if (LosesWeights(*layer.weight, *weight)) return false;
  }
  if (!affine.shift.empty()) {
    bias.resize(layer.channels, 0);
    for (size_t i = 0; i < bias.size(); ++i) bias[i] += affine.shift[i];
  }
  const bool fits = node.op_type == "BatchNormalization"
                        ? NormFitsHalf(g, node, weight ? *weight : *layer.weight, bias)
                        : FitHalf(bias);
  if (!fits) return false;
  if (weight) {
    g.SetInput(layer.id, 1, g.NewConstant(absl::StrCat(name, "/scaled"), *std::move(weight)));
  }
  if (!bias.empty()) {
    Tensor tensor = FromDoubles(type, {layer.channels}, bias);
    g.SetInput(layer.id, 2, g.NewConstant(absl::StrCat(name, "/bias"), std::move(tensor)));
  }
  g.TakeOver(layer.id, id);
  return true;
}

// Constant `id` as one number per channel, if it is broadcast only along axis 1 of a value of rank
// `rank`.
std::optional<std::vector<double>> PerChannel(GraphEditor& g, ValueId id, size_t rank,
                                              int64_t channels) {
  const Tensor* constant = g.ConstantOf(id);
  if (constant == nullptr || constant->dims().size() > rank || rank < 2) return std::nullopt;
  const size_t ahead = rank - constant->dims().size();
  for (size_t i = 0; i < constant->dims().size(); ++i) {
    const int64_t size = constant->dims()[i];
    if (size != 1 && (i + ahead != 1 || size != channels)) return std::nullopt;
  }
  auto values = ToDoubles(*constant, kMostChannels);
  if (!values.has_value() || values->empty()) return std::nullopt;
  values->resize(channels, (*values)[0]);
  return values;
}

struct Operands {
  Layer layer;
  std::vector<double> values;
};

// Matches a node with a layer's output as one operand and a constant per channel as the other.
std::optional<Operands> LayerAndConstant(GraphEditor& g, const Node& node, bool commutes) {
  for (size_t i : {0, 1}) {
    if (i == 1 && !commutes) break;
    const Value& data = g.value(node.inputs[i]);
    if (!data.shape.has_value()) continue;
    std::optional<Layer> layer = LayerBefore(g, node.inputs[i]);
    if (!layer.has_value()) continue;
    auto values = PerChannel(g, node.inputs[1 - i], data.shape->size(), layer->channels);
    if (values.has_value()) return Operands{*std::move(layer), *std::move(values)};
  }
  return std::nullopt;
}

}  // namespace

// BatchNormalization(Conv(x)) -> Conv(x); the same for ConvTranspose, Gemm and another
// BatchNormalization instead of Conv. Requires: inference mode, constant weights, bias and
// statistics, no other reader of the layer. Keeps: origins of both.
absl::StatusOr<bool> FoldBatchNorm(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  if (!node.domain.empty() || node.op_type != "BatchNormalization") return false;
  if (IntOr(node, "training_mode", 0) != 0 || node.inputs.size() != 5) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNone && g.UsesOf(node.outputs[i]) > 0) return false;
  }
  const std::optional<Layer> layer = LayerBefore(g, node.inputs[0]);
  if (!layer.has_value()) return false;
  const Tensor* scale = g.ConstantOf(node.inputs[1]);
  const Tensor* bias = g.ConstantOf(node.inputs[2]);
  if (scale == nullptr || bias == nullptr || scale->elements() != layer->channels) return false;
  const auto biases = ToDoubles(*bias, kMostChannels);
  if (!biases || static_cast<int64_t>(biases->size()) != layer->channels) return false;
  std::optional<Affine> affine = NormAffine(g, node, *scale, *biases);
  return affine && Apply(g, *layer, *std::move(affine), id);
}

// Conv(x) * c or Conv(x) / c -> Conv(x); the same for BatchNormalization, ConvTranspose or Gemm
// instead of Conv. Requires: constant weights and bias, a constant c with one number for all or for
// each channel, no other reader of the layer. Keeps: origins of both.
absl::StatusOr<bool> FoldScale(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  const bool divides = node.op_type == "Div";
  if (!node.domain.empty() || (node.op_type != "Mul" && !divides)) return false;
  std::optional<Operands> operands = LayerAndConstant(g, node, /*commutes=*/!divides);
  if (!operands.has_value()) return false;
  Affine affine{.scale = std::move(operands->values), .shift = {}};
  if (divides) {
    for (double& factor : affine.scale) factor = 1 / factor;
  }
  return Apply(g, operands->layer, std::move(affine), id);
}

// Conv(x) + c or Conv(x) - c -> Conv(x); the same for BatchNormalization, ConvTranspose or Gemm
// instead of Conv. Requirements and origins as in FoldScale. The weights do not change.
absl::StatusOr<bool> FoldBias(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  const bool subtracts = node.op_type == "Sub";
  if (!node.domain.empty() || (node.op_type != "Add" && !subtracts)) return false;
  std::optional<Operands> operands = LayerAndConstant(g, node, /*commutes=*/!subtracts);
  if (!operands.has_value()) return false;
  Affine affine{.scale = {}, .shift = std::move(operands->values)};
  if (subtracts) {
    for (double& shift : affine.shift) shift = -shift;
  }
  return Apply(g, operands->layer, std::move(affine), id);
}

namespace {

// A node that applies `affine` to the channels of `from` and has only one reader.
struct AffineNode {
  NodeId id = kNone;
  ValueId from = kNone;
  Affine affine;
};

// True for a product of values whose constant factor must stay with it, since a pattern ends in
// that factor: x * clip(x + 3) / 6, x * (erf(..) + 1) / 2.
bool IsProductOfValues(GraphEditor& g, ValueId id) {
  const Node* node = g.ProducerOf(id);
  if (node == nullptr || (node->op_type != "Mul" && node->op_type != "Div")) return false;
  return std::all_of(node->inputs.begin(), node->inputs.end(),
                     [&](ValueId input) { return g.ConstantOf(input) == nullptr; });
}

// Matches the node that computes `id`; `id` must have `channels` channels on axis 1.
std::optional<AffineNode> AffineBefore(GraphEditor& g, ValueId id, int64_t channels) {
  const Node* node = g.ProducerOf(id);
  if (node == nullptr || !node->domain.empty() || !g.HasOneUse(id)) return std::nullopt;
  const std::string& op = node->op_type;
  const bool scales = op == "Mul" || op == "Div", commutes = op == "Mul" || op == "Add";
  if ((!scales && op != "Add" && op != "Sub") || node->inputs.size() != 2) return std::nullopt;
  for (size_t i : {0, 1}) {
    if (i == 1 && !commutes) break;
    const ValueId from = node->inputs[i];
    const std::optional<Shape>& shape = g.value(from).shape;
    if (!shape.has_value() || shape->size() < 2 || (*shape)[1].size != channels) continue;
    auto values = PerChannel(g, node->inputs[1 - i], shape->size(), channels);
    if (!values.has_value() || !AllFinite(*values)) continue;
    for (double& value : *values) {
      if (op == "Sub") value = -value;
      if (op == "Div") value = 1 / value;
    }
    if (!scales || !IsProductOfValues(g, from)) {
      AffineNode found{g.value(id).producer, from, {}};
      (scales ? found.affine.scale : found.affine.shift) = *std::move(values);
      return found;
    }
  }
  return std::nullopt;
}

// True if a shift of the input affects every output equally.
bool HasNoPads(const Node& conv) {
  const std::string pad = StringOr(conv, "auto_pad", "NOTSET");
  const std::vector<int64_t> pads = IntsOf(conv, "pads").value_or(std::vector<int64_t>());
  return pad == "VALID" || (pad == "NOTSET" && std::all_of(pads.begin(), pads.end(),
                                                           [](int64_t p) { return p == 0; }));
}

}  // namespace

// Conv(x * c), Conv(x / c) and, without pads, Conv(x + c), Conv(x - c) -> Conv(x). Requires:
// constant weights and bias; a constant c with one number for all or for each channel, not zero as
// a factor, and with a small effect as a shift; no other reader of the folded node. Keeps: origins
// of both, and patterns that end in a factor.
absl::StatusOr<bool> FoldIntoConv(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  if (!node.domain.empty() || node.op_type != "Conv" || node.inputs.size() < 2) return false;
  Layer layer{.id = id, .weight = g.ConstantOf(node.inputs[1])};
  if (layer.weight == nullptr || !IsFloating(layer.weight->type())) return false;
  // A fill may be larger than memory when expanded; compressed weights must stay compressed.
  if (layer.weight->is_fill() || layer.weight->compressed() != nullptr) return false;
  if (!LayOut(node, layer) || !ReadBias(g, node, layer)) return false;
  const std::vector<int64_t>& dims = layer.weight->dims();
  const int64_t groups = IntOr(node, "group", 1);
  if (groups <= 0 || dims[0] % groups != 0 || dims[1] > kMostChannels / groups) return false;
  const std::optional<AffineNode> before = AffineBefore(g, node.inputs[0], dims[1] * groups);
  if (!before.has_value() || !AllFinite(before->affine.scale)) return false;
  const int64_t taps = layer.weight->elements() / dims[0] / dims[1];
  // The channel of x for output channel o and its i-th input channel.
  const auto channel = [&](int64_t o, int64_t i) { return o / (dims[0] / groups) * dims[1] + i; };
  if (const std::vector<double>& scale = before->affine.scale; !scale.empty()) {
    if (std::any_of(scale.begin(), scale.end(), [](double s) { return s == 0; })) return false;
    std::vector<double> factors = scale;
    if (groups > 1) {
      factors.clear();
      for (int64_t row = 0; row < dims[0] * dims[1]; ++row) {
        factors.push_back(scale[channel(row / dims[1], row % dims[1])]);
      }
    }
    Tensor scaled = ScaleRows(*layer.weight, taps, factors);
    if (LosesWeights(*layer.weight, scaled)) return false;
    const std::string name = g.value(node.inputs[1]).name;
    g.SetInput(id, 1, g.NewConstant(absl::StrCat(name, "/scaled"), std::move(scaled)));
  } else {
    if (!HasNoPads(node)) return false;
    // The engine's sums contain the effect of the shift until the bias is added, so it must be
    // small.
    constexpr double kMostShift = 64;
    layer.bias.resize(layer.channels, 0);
    for (int64_t o = 0; o < dims[0]; ++o) {
      double magnitude = 0;
      for (int64_t k = 0; k < dims[1] * taps; ++k) {
        const double part = ElementAsDouble(*layer.weight, o * dims[1] * taps + k) *
                            before->affine.shift[channel(o, k / taps)];
        layer.bias[o] += part;
        magnitude += std::fabs(part);
      }
      if (!(magnitude <= kMostShift)) return false;
    }
    if (!FitHalf(layer.bias)) return false;
    const std::string name = g.value(node.inputs[1]).name;
    const ValueId bias = g.NewConstant(absl::StrCat(name, "/bias"),
                                       FromDoubles(layer.weight->type(), {dims[0]}, layer.bias));
    std::vector<ValueId> inputs = g.node(id).inputs;
    inputs.resize(3, kNone);
    inputs[2] = bias;
    g.SetInputs(id, std::move(inputs));
  }
  g.node(id).origins = UnionOfOrigins(g.node(id), g.node(before->id));
  g.SetInput(id, 0, before->from);
  return true;
}

}  // namespace anemone
