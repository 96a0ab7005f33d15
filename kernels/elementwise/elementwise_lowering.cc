// Lowers ONNX's elementwise operators on two or more tensors to the unit ElementWise of
// elementwise.cc (op_matrix.json).
#include <cmath>
#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "importer/elements.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/fp16_range.h"
#include "kernels/shared/unary_lowering.h"
#include "kernels/units/goc.h"
#include "math/core/half.h"

namespace anemone {
namespace {

// And, Or and Xor become operations on 0 and 1, because there is no logical unit (op_matrix.json).
constexpr struct {
  const char* op;
  ElementWiseType type;
} kOperators[] = {
    {"Add", ElementWiseType::kAdd},
    {"Sub", ElementWiseType::kSub},
    {"Mul", ElementWiseType::kMult},
    {"Div", ElementWiseType::kDiv},
    {"Sum", ElementWiseType::kAdd},
    {"Mean", ElementWiseType::kAdd},
    {"Min", ElementWiseType::kMin},
    {"Max", ElementWiseType::kMax},
    {"Equal", ElementWiseType::kEqual},
    {"Less", ElementWiseType::kLessThan},
    {"Greater", ElementWiseType::kGreaterThan},
    {"And", ElementWiseType::kMin},
    {"Or", ElementWiseType::kMax},
    {"Xor", ElementWiseType::kNotEqual},
    // The negated comparison; its result x is then replaced by 1 - x.
    {"GreaterOrEqual", ElementWiseType::kLessThan},
    {"LessOrEqual", ElementWiseType::kGreaterThan},
};

ElementWiseType TypeOf(const Node& node) { return RowNamed(node.op_type, kOperators).type; }

// x op number as x * scale + bias; nullopt if the operation does not have this form. A division
// becomes a product with the fp16 reciprocal, whose relative error is at most 2^-10.
struct Affine {
  double scale, bias;
};

std::optional<Affine> AffineOf(ElementWiseType type, double number, bool number_first) {
  switch (type) {
    case ElementWiseType::kAdd:
      return Affine{1, number};
    case ElementWiseType::kSub:
      return number_first ? Affine{-1, number} : Affine{1, -number};
    case ElementWiseType::kMult:
      return Affine{number, 0};
    case ElementWiseType::kDiv:
      if (number_first || number == 0) return std::nullopt;
      return Affine{1 / number, 0};
    default:
      return std::nullopt;
  }
}

// If one operand is a number and the result has the shape of the other operand: a GOC.
absl::StatusOr<std::optional<Operand>> LowerByNumber(LowerContext& c, const Node& node,
                                                     absl::Span<const int64_t> shape) {
  for (int i = 0; i < 2; ++i) {
    std::optional<double> number = c.view().Scalar(node.inputs[i]);
    std::optional<Affine> affine;
    if (number) affine = AffineOf(TypeOf(node), *number, i == 0);
    if (!affine) continue;
    Operand x = AlignedOperand(c, node.inputs[1 - i], shape);
    if (c.DimsOf(x) != PlaceShape(shape)) continue;
    return ScaleByInput(c, x, node, i, affine->scale, affine->bias);
  }
  return std::nullopt;
}

// The operands of a node of two inputs. A constant factor or divisor that fp16 cannot hold is
// multiplied by a power of two; the result must then be multiplied by `rescaling`.
struct Pair {
  Operand a, b;
  double rescaling = 1;
};

Pair OperandsOf(LowerContext& c, const Node& node, absl::Span<const int64_t> shape) {
  Pair pair;
  for (size_t i = 0; i < 2; ++i) {
    Operand& x = i == 0 ? pair.a : pair.b;
    const double scale = RescalingOf(c.view(), node, i);
    if (scale == 1) {
      x = AlignedOperand(c, node.inputs[i], shape);
      continue;
    }
    const Tensor& constant = *c.view().Constant(node.inputs[i]);
    x = AlignedConstant(c, ScaleRows(constant, constant.elements(), absl::MakeConstSpan(&scale, 1)),
                        shape);
    pair.rescaling *= i == 1 && TypeOf(node) == ElementWiseType::kDiv ? scale : 1 / scale;
  }
  return pair;
}

absl::Status LowerBinary(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<Operand> y, LowerByNumber(c, node, shape));
  if (!y) {
    const Pair x = OperandsOf(c, node, shape);
    y = ScaleAndShift(c, Combined(c, TypeOf(node), x.a, x.b), x.rescaling, 0);
  }
  return c.Out(node.outputs[0], *y);
}

// Logical not: 1 for 0, and 0 for 1.
Operand Opposite(LowerContext& c, const Operand& x) { return ScaleAndShift(c, x, -1, 1); }

// >= is computed as not <, and <= as not >. The engine has no NaN, so this is exact.
absl::Status LowerOrEqual(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_FAIL(c, std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand a = AlignedOperand(c, node.inputs[0], shape);
  Operand b = AlignedOperand(c, node.inputs[1], shape);
  Operand y = Combined(c, TypeOf(node), a, b);
  y = Opposite(c, y);
  return c.Out(node.outputs[0], y);
}

// The index of the operand that is an infinite constant; nullopt if there is none.
std::optional<int> InfinityOf(const GraphView& view, const Node& node) {
  for (int i = 0; i < 2; ++i) {
    const std::optional<double> number = view.Scalar(node.inputs[i]);
    if (number && std::isinf(*number)) return i;
  }
  return std::nullopt;
}

// A comparison with an infinity is true at the largest fp16 number and beyond. A Where or a port
// turns an infinity into this number (where.cc), but a sum of two such numbers is infinite.
absl::Status LowerEqual(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const std::optional<int> infinity = InfinityOf(c.view(), node);
  if (!infinity) return LowerBinary(match, c);
  const bool negative = *c.view().Scalar(node.inputs[*infinity]) < 0;
  const float end = math::ToFloat(math::kHalfMax) * (negative ? -1.0f : 1.0f);
  const auto inside = negative ? ElementWiseType::kGreaterThan : ElementWiseType::kLessThan;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand x = AlignedOperand(c, node.inputs[1 - *infinity], shape);
  Operand y = Combined(c, inside, x, ScalarConstant(c, end));
  y = Opposite(c, y);
  return c.Out(node.outputs[0], y);
}

// For targets without Div: Inv, then Mult (netplist.md). This rounds once more.
absl::Status LowerInverseDiv(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Pair x = OperandsOf(c, node, shape);
  x.b = Activated(c, NeuronType::kInv, x.b);
  Operand y = Combined(c, ElementWiseType::kMult, x.a, x.b);
  y = ScaleAndShift(c, y, x.rescaling, 0);
  return c.Out(node.outputs[0], y);
}

// Min, Max, Sum and Mean of any number of tensors: a chain of units, each of which rounds.
absl::Status LowerChain(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand y = AlignedOperand(c, node.inputs[0], shape);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    Operand x = AlignedOperand(c, node.inputs[i], shape);
    y = Combined(c, TypeOf(node), y, x);
  }
  if (node.op_type == "Mean") {
    y = ScaleAndShift(c, y, 1.0 / static_cast<double>(node.inputs.size()), 0);
  }
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {
    {.op = "Add", .lower = LowerBinary},
    {.op = "Sub", .lower = LowerBinary},
    {.op = "Mul", .lower = LowerBinary},
    {.op = "Div", .lower = LowerBinary},
    {.op = "Div", .rewritten = true, .lower = LowerInverseDiv},
    {.op = "Equal", .lower = LowerEqual},
    {.op = "Less", .lower = LowerBinary},
    {.op = "Greater", .lower = LowerBinary},
    {.op = "LessOrEqual", .lower = LowerOrEqual},
    {.op = "GreaterOrEqual", .lower = LowerOrEqual},
    {.op = "And", .rewritten = true, .lower = LowerBinary},
    {.op = "Or", .rewritten = true, .lower = LowerBinary},
    {.op = "Xor", .rewritten = true, .lower = LowerBinary},
    {.op = "Min", .lower = LowerChain},
    {.op = "Max", .lower = LowerChain},
    {.op = "Sum", .lower = LowerChain},
    {.op = "Mean", .lower = LowerChain},
    {.op = "Abs", .lower = LowerUnary<Absolute>},
};

}  // namespace

KernelRows ElementwiseLoweringRows() { return {{}, kLowerings}; }

}  // namespace anemone
