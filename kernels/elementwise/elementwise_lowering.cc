// How ONNX's operators on two or more tensors become the unit of elementwise.cc (op_matrix.json).
#include <cmath>
#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/goc.h"
#include "math/core/half.h"

namespace anemone {
namespace {

// And, Or and Xor are these on 0 and 1; there is no logical unit (op_matrix.json).
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
    // The opposite, which 1 - x then turns round.
    {"GreaterOrEqual", ElementWiseType::kLessThan},
    {"LessOrEqual", ElementWiseType::kGreaterThan},
};

ElementWiseType TypeOf(const Node& node) { return RowNamed(node.op_type, kOperators).type; }

// x op number, as x * scale + bias; nullopt if it is not of that kind. A quotient is a product
// with the fp16 reciprocal: relative error 2^-10 at most.
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

// One operand is a number: a GOC, if the result has the shape of the other.
absl::StatusOr<std::optional<Operand>> LowerByNumber(LowerContext& c, const Node& node,
                                                     absl::Span<const int64_t> shape) {
  for (int i = 0; i < 2; ++i) {
    std::optional<double> number = c.view().Scalar(node.inputs[i]);
    std::optional<Affine> affine;
    if (number) affine = AffineOf(TypeOf(node), *number, i == 0);
    if (!affine) continue;
    Operand x = AlignedOperand(c, node.inputs[1 - i], shape);
    if (c.DimsOf(x) != PlaceShape(shape)) continue;
    x = ScaleAndShift(c, x, affine->scale, affine->bias);
    return x;
  }
  return std::nullopt;
}

absl::Status LowerBinary(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<Operand> y, LowerByNumber(c, node, shape));
  if (!y) {
    Operand a = AlignedOperand(c, node.inputs[0], shape);
    Operand b = AlignedOperand(c, node.inputs[1], shape);
    y = Combined(c, TypeOf(node), a, b);
  }
  return c.Out(node.outputs[0], *y);
}

// Of 0 and 1 the other one.
Operand Opposite(LowerContext& c, const Operand& x) { return ScaleAndShift(c, x, -1, 1); }

// >= is not <. There is no NaN inside the engine, so this is exact.
absl::Status LowerOrEqual(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_FAIL(c, std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand a = AlignedOperand(c, node.inputs[0], shape);
  Operand b = AlignedOperand(c, node.inputs[1], shape);
  Operand y = Combined(c, TypeOf(node), a, b);
  y = Opposite(c, y);
  return c.Out(node.outputs[0], y);
}

// Which operand is an infinity; nullopt if none is.
std::optional<int> InfinityOf(const GraphView& view, const Node& node) {
  for (int i = 0; i < 2; ++i) {
    const std::optional<double> number = view.Scalar(node.inputs[i]);
    if (number && std::isinf(*number)) return i;
  }
  return std::nullopt;
}

// Equal to an infinity is at fp16's end or beyond: what a Where or a port makes of an infinity is
// the end (where.cc), what a sum of two such makes is infinite.
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

// Division where the unit has none: Inv, then Mult (netplist.md). One rounding more.
absl::Status LowerInverseDiv(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand a = AlignedOperand(c, node.inputs[0], shape);
  Operand b = AlignedOperand(c, node.inputs[1], shape);
  b = Activated(c, NeuronType::kInv, b);
  Operand y = Combined(c, ElementWiseType::kMult, a, b);
  return c.Out(node.outputs[0], y);
}

// Min, Max, Sum and Mean of any number of tensors: a chain, rounded at each link.
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

absl::Status LowerAbs(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  x = Absolute(c, x);
  return c.Out(node.outputs[0], x);
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
    {.op = "Abs", .lower = LowerAbs},
};

}  // namespace

KernelRows ElementwiseLoweringRows() { return {{}, kLowerings}; }

}  // namespace anemone
