// Activations that are lowered to several units, and patterns of several nodes that are one
// activation.
#include "kernels/activation/activation.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/shared/unary_lowering.h"
#include "kernels/units/goc.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

absl::Status LowerHardSigmoid(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, a.Float("alpha", 0.2f));
  ANEMONE_ASSIGN_OR_RETURN(float beta, a.Float("beta", 0.5f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Operand x = c.In(node.inputs[0]);
  x = HardSigmoid(c, x, alpha, beta);
  return c.Out(node.outputs[0], x);
}

// x * tanh(softplus(x)) = x * m / (m + 2) with n = exp(x), m = n * (n + 2). For x above 5 the
// factor is 1 in fp16, so x is clamped to 5 before exp, which keeps n * n from overflowing. The
// relative error is below 4e-3.
absl::Status LowerMish(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  Operand n = Combined(c, ElementWiseType::kMin, x, ScalarConstant(c, 5));
  n = Activated(c, NeuronType::kExp, n);
  Operand m = ScaleAndShift(c, n, 1, 2);
  m = Combined(c, ElementWiseType::kMult, n, m);
  Operand below = ScaleAndShift(c, m, 1, 2);
  Operand factor = Combined(c, ElementWiseType::kDiv, m, below);
  x = Combined(c, ElementWiseType::kMult, x, factor);
  return c.Out(node.outputs[0], x);
}

// alpha * ELU(x / alpha).
absl::Status LowerCelu(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, a.Float("alpha", 1.0f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (!(alpha > 0)) return c.NotLowered("Celu whose alpha is not positive");
  Operand x = c.In(node.inputs[0]);
  x = ScaleInFactors(c, x, 1.0 / alpha, 0);
  x = Activated(c, NeuronType::kELU, x, 1);
  x = ScaleInFactors(c, x, alpha, 0);
  return c.Out(node.outputs[0], x);
}

// gamma * ELU(x).
absl::Status LowerSelu(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, a.Float("alpha", 1.67326319217681884765625f));
  ANEMONE_ASSIGN_OR_RETURN(float gamma, a.Float("gamma", 1.05070102214813232421875f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Operand x = c.In(node.inputs[0]);
  x = Activated(c, NeuronType::kELU, x, alpha);
  x = ScaleInFactors(c, x, gamma, 0);
  return c.Out(node.outputs[0], x);
}

absl::Status LowerThresholdedRelu(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, a.Float("alpha", 1.0f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Operand x = c.In(node.inputs[0]);
  x = ThresholdedRelu(c, x, alpha);
  return c.Out(node.outputs[0], x);
}

// x - bias where x > lambd, x + bias where x < -lambd, else 0.
absl::Status LowerShrink(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float bias, a.Float("bias", 0.0f));
  ANEMONE_ASSIGN_OR_RETURN(float lambda, a.Float("lambd", 0.5f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (!(lambda >= 0)) return c.NotLowered("Shrink with a negative lambd");
  Operand x = c.In(node.inputs[0]);
  Operand outside = Absolute(c, x);
  outside = Combined(c, ElementWiseType::kGreaterThan, outside, ScalarConstant(c, lambda));
  if (bias != 0) {
    Operand towards = Activated(c, NeuronType::kSign, x);
    towards = ScaleAndShift(c, towards, bias, 0);
    x = Combined(c, ElementWiseType::kSub, x, towards);
  }
  x = Combined(c, ElementWiseType::kMult, x, outside);
  return c.Out(node.outputs[0], x);
}

// A single slope is a LeakyReLU.
absl::Status LowerPRelu(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  if (c.route() == Route::kMil && shape.size() < 3) return c.Refuse(rule::kPreluRank);
  Operand x = c.In(node.inputs[0]);
  if (std::optional<double> slope = c.view().Scalar(node.inputs[1])) {
    x = Activated(c, NeuronType::kLeakyReLU, x, static_cast<float>(*slope));
    return c.Out(node.outputs[0], x);
  }
  Operand slope = AlignedOperand(c, node.inputs[1], shape);
  x = PRelu(c, x, slope);
  return c.Out(node.outputs[0], x);
}

bool Near(double value, double wanted) {
  return std::abs(value - wanted) <= 1e-3 * std::abs(wanted);
}

// A product written as nested Mul and Div nodes in any order: the product of its numbers, its other
// factors, and the inner nodes, which are merged into the pattern.
struct Product {
  double scale = 1;
  std::vector<ValueId> factors;
  std::vector<NodeId> nodes;
};

constexpr size_t kMostNodes = 8;  // in a product: limits the walk in malicious models

void Multiply(const GraphView& view, const Node& node, Product& product);

void MultiplyValue(const GraphView& view, ValueId value, Product& product) {
  if (auto number = view.Scalar(value)) {
    product.scale *= *number;
    return;
  }
  const Node* inner = view.OnlyProducer(value, "Mul");
  if (inner == nullptr) inner = view.OnlyProducer(value, "Div");
  bool opaque = inner == nullptr || product.nodes.size() >= kMostNodes ||
                (inner->op_type == "Div" && !view.Scalar(inner->inputs[1]));
  if (opaque) {
    product.factors.push_back(value);
    return;
  }
  product.nodes.push_back(view.IdOf(*inner));
  Multiply(view, *inner, product);
}

// Multiplies `product` by the operands of `node`, which is a Mul or a Div by a number.
void Multiply(const GraphView& view, const Node& node, Product& product) {
  MultiplyValue(view, node.inputs[0], product);
  if (node.op_type == "Mul") {
    MultiplyValue(view, node.inputs[1], product);
  } else {
    product.scale /= *view.Scalar(node.inputs[1]);
  }
}

std::optional<Product> ProductOf(const GraphView& view, const Node& node) {
  if (node.op_type == "Div" && !view.Scalar(node.inputs[1])) return std::nullopt;
  Product product;
  Multiply(view, node, product);
  return product;
}

// Value `value` as a product. If no Mul or Div produces it, it is the only factor.
Product ProductBehind(const GraphView& view, ValueId value) {
  Product product;
  MultiplyValue(view, value, product);
  return product;
}

// Whether the product is scale * x^power.
bool IsPowerOf(const Product& product, ValueId x, double scale, size_t power) {
  if (!Near(product.scale, scale) || product.factors.size() != power) return false;
  for (ValueId factor : product.factors) {
    if (factor != x) return false;
  }
  return true;
}

void Append(std::vector<NodeId>& to, absl::Span<const NodeId> nodes) {
  to.insert(to.end(), nodes.begin(), nodes.end());
}

// If `value` is y + `number` by an Add without other readers: y.
std::optional<ValueId> WithoutNumber(const GraphView& view, ValueId value, double number,
                                     std::vector<NodeId>& nodes) {
  const Node* add = view.OnlyProducer(value, "Add");
  for (int i = 0; add != nullptr && i < 2; ++i) {
    auto added = view.Scalar(add->inputs[i]);
    if (!added || !Near(*added, number)) continue;
    nodes.push_back(view.IdOf(*add));
    return add->inputs[1 - i];
  }
  return std::nullopt;
}

// Whether `gate` is sigmoid(x), or sigmoid(1.0 * x) as Paddle exports it.
bool IsSigmoid(const GraphView& view, ValueId gate, ValueId x, std::vector<NodeId>& nodes) {
  const Node* sigmoid = view.OnlyProducer(gate, "Sigmoid");
  if (sigmoid == nullptr) return false;
  Product inside = ProductBehind(view, sigmoid->inputs[0]);
  nodes.push_back(view.IdOf(*sigmoid));
  Append(nodes, inside.nodes);
  return IsPowerOf(inside, x, 1, 1);
}

// Whether `gate` is clip(x + 3, 0, 6).
bool IsHardGate(const GraphView& view, ValueId gate, ValueId x, std::vector<NodeId>& nodes) {
  const Node* clip = view.OnlyProducer(gate, "Clip");
  if (clip == nullptr || clip->inputs.size() < 3 || view.Scalar(clip->inputs[1]) != 0.0 ||
      view.Scalar(clip->inputs[2]) != 6.0) {
    return false;
  }
  nodes.push_back(view.IdOf(*clip));
  return WithoutNumber(view, clip->inputs[0], 3, nodes) == x;
}

// Whether `gate` is HardSigmoid(x) with alpha 1/6 and beta 0.5.
bool IsHardSigmoid(const GraphView& view, ValueId gate, ValueId x, std::vector<NodeId>& nodes) {
  const Node* node = view.OnlyProducer(gate, "HardSigmoid");
  if (node == nullptr || node->inputs[0] != x) return false;
  Attributes a(*node);
  auto alpha = a.Float("alpha", 0.2f), beta = a.Float("beta", 0.5f);
  nodes.push_back(view.IdOf(*node));
  return alpha.ok() && beta.ok() && Near(*alpha, 1.0 / 6) && Near(*beta, 0.5);
}

// Whether `gate` is 1 + erf(x / sqrt(2)).
bool IsErfGate(const GraphView& view, ValueId gate, ValueId x, std::vector<NodeId>& nodes) {
  auto value = WithoutNumber(view, gate, 1, nodes);
  const Node* erf = value ? view.OnlyProducer(*value, "Erf") : nullptr;
  if (erf == nullptr) return false;
  Product inside = ProductBehind(view, erf->inputs[0]);
  nodes.push_back(view.IdOf(*erf));
  Append(nodes, inside.nodes);
  return IsPowerOf(inside, x, 0.70710678, 1);
}

// Whether `value` is scale * x^power, with the power as products or as a Pow.
bool IsScaledPower(const GraphView& view, ValueId value, ValueId x, double scale, size_t power,
                   std::vector<NodeId>& nodes) {
  Product product = ProductBehind(view, value);
  Append(nodes, product.nodes);
  if (IsPowerOf(product, x, scale, power)) return true;
  if (product.factors.size() != 1 || !Near(product.scale, scale)) return false;
  const Node* pow = view.OnlyProducer(product.factors[0], "Pow");
  if (pow == nullptr || pow->inputs[0] != x) return false;
  nodes.push_back(view.IdOf(*pow));
  return view.Scalar(pow->inputs[1]) == static_cast<double>(power);
}

constexpr double kCubic = 0.044715;

// Whether `cubic` is x + 0.044715 x^3.
bool IsCubic(const GraphView& view, ValueId cubic, ValueId x, std::vector<NodeId>& nodes) {
  const Node* add = view.OnlyProducer(cubic, "Add");
  for (int i = 0; add != nullptr && i < 2; ++i) {
    if (add->inputs[i] != x) continue;
    nodes.push_back(view.IdOf(*add));
    return IsScaledPower(view, add->inputs[1 - i], x, kCubic, 3, nodes);
  }
  return false;
}

// Whether the product, without its number, is x (1 + 0.044715 x^2).
bool IsFactoredCubic(const GraphView& view, const Product& product, ValueId x,
                     std::vector<NodeId>& nodes) {
  for (int i = 0; product.factors.size() == 2 && i < 2; ++i) {
    if (product.factors[i] != x) continue;
    auto square = WithoutNumber(view, product.factors[1 - i], 1, nodes);
    return square && IsScaledPower(view, *square, x, kCubic, 2, nodes);
  }
  return false;
}

// Whether `gate` is 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
bool IsTanhGate(const GraphView& view, ValueId gate, ValueId x, std::vector<NodeId>& nodes) {
  auto value = WithoutNumber(view, gate, 1, nodes);
  const Node* tanh = value ? view.OnlyProducer(*value, "Tanh") : nullptr;
  if (tanh == nullptr) return false;
  Product inside = ProductBehind(view, tanh->inputs[0]);
  nodes.push_back(view.IdOf(*tanh));
  Append(nodes, inside.nodes);
  if (!Near(inside.scale, 0.79788456)) return false;
  return inside.factors.size() == 1 ? IsCubic(view, inside.factors[0], x, nodes)
                                    : IsFactoredCubic(view, inside, x, nodes);
}

using IsGate = bool (*)(const GraphView&, ValueId gate, ValueId x, std::vector<NodeId>& nodes);

// Whether the anchor is scale * x * gate(x), in any order.
template <IsGate kIsGate>
bool MatchGated(const GraphView& view, const Node& anchor, double scale, Match& match) {
  auto product = ProductOf(view, anchor);
  if (!product || product->factors.size() != 2 || !Near(product->scale, scale)) return false;
  for (int i = 0; i < 2; ++i) {
    ValueId x = product->factors[i];
    std::vector<NodeId> nodes;
    if (!kIsGate(view, product->factors[1 - i], x, nodes)) continue;
    Append(nodes, product->nodes);
    std::sort(nodes.begin(), nodes.end());
    match.nodes = std::move(nodes);
    match.values = {x};
    return true;
  }
  return false;
}

bool MatchSilu(const GraphView& view, const Node& anchor, Match& match) {
  return MatchGated<IsSigmoid>(view, anchor, 1, match);
}

bool MatchHardSwish(const GraphView& view, const Node& anchor, Match& match) {
  return MatchGated<IsHardGate>(view, anchor, 1.0 / 6, match) ||
         MatchGated<IsHardSigmoid>(view, anchor, 1, match);
}

bool MatchGelu(const GraphView& view, const Node& anchor, Match& match) {
  return MatchGated<IsErfGate>(view, anchor, 0.5, match) ||
         MatchGated<IsTanhGate>(view, anchor, 0.5, match);
}

// The operand x of a pattern x * gate(x). Fails if the shape of a constant factor broadcasts x.
Operand GatedOperand(const Match& match, LowerContext& c) {
  ANEMONE_ASSIGN_OR_FAIL(c, auto shape, c.ShapeOf(c.anchor(match).outputs[0]));
  Operand x = AlignedOperand(c, match.values[0], shape);
  if (c.DimsOf(x) != PlaceShape(shape))
    return c.NotLowered("a constant whose shape broadcasts the other operand");
  return x;
}

absl::Status LowerSiluPattern(const Match& match, LowerContext& c) {
  Operand x = GatedOperand(match, c);
  x = Activated(c, NeuronType::kSwish, x);
  return c.Out(c.anchor(match).outputs[0], x);
}

absl::Status LowerHardSwishPattern(const Match& match, LowerContext& c) {
  Operand x = GatedOperand(match, c);
  x = HardSwish(c, x);
  return c.Out(c.anchor(match).outputs[0], x);
}

absl::Status LowerGeluPattern(const Match& match, LowerContext& c) {
  Operand x = GatedOperand(match, c);
  x = Activated(c, NeuronType::kGELU, x);
  return c.Out(c.anchor(match).outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "HardSigmoid", .lower = LowerHardSigmoid},
    {.op = "HardSwish", .lower = LowerUnary<HardSwish>},
    {.op = "Softplus", .lower = LowerUnary<Softplus>},
    {.op = "Softsign", .lower = LowerUnary<Softsign>},
    {.op = "Mish", .rewritten = true, .lower = LowerMish},
    {.op = "Celu", .rewritten = true, .lower = LowerCelu},
    {.op = "Selu", .rewritten = true, .lower = LowerSelu},
    {.op = "Shrink", .rewritten = true, .lower = LowerShrink},
    {.op = "ThresholdedRelu", .lower = LowerThresholdedRelu},
    {.op = "PRelu", .lower = LowerPRelu},
    {.op = "Mul", .pattern = "GELU", .match = MatchGelu, .lower = LowerGeluPattern},
    {.op = "Div", .pattern = "GELU", .match = MatchGelu, .lower = LowerGeluPattern},
    {.op = "Mul", .pattern = "SiLU", .match = MatchSilu, .lower = LowerSiluPattern},
    {.op = "Mul", .pattern = "HardSwish", .match = MatchHardSwish, .lower = LowerHardSwishPattern},
    {.op = "Div", .pattern = "HardSwish", .match = MatchHardSwish, .lower = LowerHardSwishPattern},
};

}  // namespace

Operand HardSigmoid(NetworkBuilder& c, Operand x, double scale, double bias) {
  x = ScaleInFactors(c, x, scale, bias);
  return Activated(c, NeuronType::kClampedReLU, x, 0, 1);
}

Operand HardSwish(NetworkBuilder& c, const Operand& x) {
  Operand gate = HardSigmoid(c, x, 1.0 / 6, 0.5);
  return Combined(c, ElementWiseType::kMult, x, gate);
}

Operand Softplus(NetworkBuilder& c, Operand x) {
  Operand tail = Absolute(c, x);
  tail = Activated(c, NeuronType::kSigmoidHighPrecision, tail);
  tail = NaturalLog(c, tail);
  x = Activated(c, NeuronType::kReLU, x);
  return Combined(c, ElementWiseType::kSub, x, tail);
}

Operand Softsign(NetworkBuilder& c, const Operand& x) {
  Operand below = Absolute(c, x);
  below = ScaleAndShift(c, below, 1, 1);
  return Combined(c, ElementWiseType::kDiv, x, below);
}

Operand ThresholdedRelu(NetworkBuilder& c, const Operand& x, float alpha) {
  Operand above = Combined(c, ElementWiseType::kGreaterThan, x, ScalarConstant(c, alpha));
  return Combined(c, ElementWiseType::kMult, x, above);
}

Operand PRelu(NetworkBuilder& c, Operand x, const Operand& slopes) {
  Operand below = Combined(c, ElementWiseType::kMin, x, ScalarConstant(c, 0));
  below = Combined(c, ElementWiseType::kMult, below, slopes);
  x = Activated(c, NeuronType::kReLU, x);
  return Combined(c, ElementWiseType::kAdd, x, below);
}

KernelRows ActivationRows() { return {{}, kLowerings}; }

}  // namespace anemone
