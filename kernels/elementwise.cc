// ElementWise: one operation on the elements of two tensors, one rounding. Facts: validators.json
// ElementWise; enums.json ZinIrEWType; numerics.json ew-*.
#include "kernels/elementwise.h"

#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "engine/math/elementwise.h"
#include "engine/math/unary.h"
#include "kernels/attributes.h"
#include "kernels/goc.h"
#include "kernels/neuron.h"
#include "kernels/reshape.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ElementWiseParams {
  ElementWiseType type = ElementWiseType::kAdd;
  bool absolute = false;  // Abs, the type with one bottom
};

struct TypeRow {
  const char* name;
  math::BinaryOp function;
};

constexpr TypeRow kTypes[] = {
    {"Add", math::BinaryOp::kAdd},
    {"Sub", math::BinaryOp::kSub},
    {"Mult", math::BinaryOp::kMul},
    {"Div", math::BinaryOp::kDiv},
    {"Power", math::BinaryOp::kPow},
    {"Min", math::BinaryOp::kMin},
    {"Max", math::BinaryOp::kMax},
    {"Equal", math::BinaryOp::kEqual},
    {"NotEqual", math::BinaryOp::kNotEqual},
    {"LessThan", math::BinaryOp::kLess},
    {"GreaterThan", math::BinaryOp::kGreater},
};

const TypeRow& RowOf(ElementWiseType type) { return kTypes[static_cast<int>(type)]; }

absl::StatusOr<Dims> Shape(const ElementWiseParams& p, Bottoms in) {
  Dims out = in[0].dims;
  if (p.absolute) return out;
  for (int i = 0; i < kAxisCount; ++i) {
    int64_t a = in[0].dims.extent[i], b = in[1].dims.extent[i];
    if (a != b && a != 1 && b != 1) {
      return absl::InvalidArgumentError(absl::StrCat("operands of ", DimsToString(in[0].dims),
                                                     " and ", DimsToString(in[1].dims),
                                                     " do not broadcast"));
    }
    out.extent[i] = a == 1 ? b : a;
  }
  return out;
}

// Below A13 the divisor is a constant, else no pattern of the code generator matches.
Verdict Codegen(const ElementWiseParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!p.absolute && p.type == ElementWiseType::kDiv && !in[1].is_constant &&
      !judge.FamilyAtLeast(2)) {
    return judge.Reject(rule::kElementwiseDivide);
  }
  return judge.Accept();
}

constexpr Field<ElementWiseParams> kFields[] = {{"Type", [](const ElementWiseParams& p) {
                                                   return std::string(
                                                       p.absolute ? "Abs" : RowOf(p.type).name);
                                                 }}};

void Compute(const ElementWiseParams& p, const void*, absl::Span<const ConstView> in, View out) {
  if (p.absolute) return math::Abs(in[0].span(), out.span());
  math::Binary(RowOf(p.type).function, in[0].span(), in[0].dims.extent, in[1].span(),
               in[1].dims.extent, out.span(), out.dims.extent);
}

const UnitKindOf<ElementWiseParams>& Kind() {
  static const UnitKindOf<ElementWiseParams>& kind =
      *new UnitKindOf<ElementWiseParams>({.type = "ElementWise",
                                          .shape = Shape,
                                          .codegen = Codegen,
                                          .fields = kFields,
                                          .compute = Compute});
  return kind;
}

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

ElementWiseType TypeOf(const Node& node) {
  const auto* row = std::begin(kOperators);
  while (node.op_type != row->op) ++row;
  return row->type;
}

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
    ANEMONE_ASSIGN_OR_RETURN(Operand x, AlignedOperand(c, node.inputs[1 - i], shape));
    if (c.DimsOf(x) != PlaceShape(shape)) continue;
    ANEMONE_ASSIGN_OR_RETURN(x, Scaled(c, x, affine->scale, affine->bias));
    return x;
  }
  return std::nullopt;
}

absl::Status LowerBinary(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::optional<Operand> y, LowerByNumber(c, node, shape));
  if (!y) {
    ANEMONE_ASSIGN_OR_RETURN(Operand a, AlignedOperand(c, node.inputs[0], shape));
    ANEMONE_ASSIGN_OR_RETURN(Operand b, AlignedOperand(c, node.inputs[1], shape));
    ANEMONE_ASSIGN_OR_RETURN(y, Combined(c, TypeOf(node), a, b));
  }
  return c.Out(node.outputs[0], *y);
}

// >= is not <. There is no NaN inside the engine, so this is exact.
absl::Status LowerOrEqual(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand a, AlignedOperand(c, node.inputs[0], shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand b, AlignedOperand(c, node.inputs[1], shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, TypeOf(node), a, b));
  ANEMONE_ASSIGN_OR_RETURN(y, Scaled(c, y, -1, 1));
  return c.Out(node.outputs[0], y);
}

// Division where the unit has none: Inv, then Mult (netplist.md). One rounding more.
absl::Status LowerInverseDiv(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand a, AlignedOperand(c, node.inputs[0], shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand b, AlignedOperand(c, node.inputs[1], shape));
  ANEMONE_ASSIGN_OR_RETURN(b, Activated(c, NeuronType::kInv, b));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, ElementWiseType::kMult, a, b));
  return c.Out(node.outputs[0], y);
}

// Min, Max, Sum and Mean of any number of tensors: a chain, rounded at each link.
absl::Status LowerChain(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, AlignedOperand(c, node.inputs[0], shape));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(Operand x, AlignedOperand(c, node.inputs[i], shape));
    ANEMONE_ASSIGN_OR_RETURN(y, Combined(c, TypeOf(node), y, x));
  }
  if (node.op_type == "Mean") {
    ANEMONE_ASSIGN_OR_RETURN(y, Scaled(c, y, 1.0 / static_cast<double>(node.inputs.size()), 0));
  }
  return c.Out(node.outputs[0], y);
}

absl::Status LowerAbs(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, Absolute(c, x));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Add", .lower = LowerBinary},
    {.op = "Sub", .lower = LowerBinary},
    {.op = "Mul", .lower = LowerBinary},
    {.op = "Div", .lower = LowerBinary},
    {.op = "Div", .rewritten = true, .lower = LowerInverseDiv},
    {.op = "Equal", .lower = LowerBinary},
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

// `own` with ones in front, of the rank of `shape`.
absl::StatusOr<std::vector<int64_t>> AlignedShape(absl::Span<const int64_t> own,
                                                  absl::Span<const int64_t> shape) {
  if (own.size() > shape.size()) {
    return absl::InvalidArgumentError(absl::StrCat("an operand of rank ", own.size(),
                                                   " for a result of rank ", shape.size(),
                                                   "; run the ONNX checker on the model"));
  }
  std::vector<int64_t> aligned(shape.size() - own.size(), 1);
  aligned.insert(aligned.end(), own.begin(), own.end());
  return aligned;
}

}  // namespace

absl::StatusOr<Operand> Combined(NetworkBuilder& c, ElementWiseType type, const Operand& a,
                                 const Operand& b) {
  return c.Add(Kind(), ElementWiseParams{.type = type}, {a, b});
}

absl::StatusOr<Operand> Absolute(NetworkBuilder& c, const Operand& x) {
  return c.Add(Kind(), ElementWiseParams{.absolute = true}, {x});
}

Operand ScalarConstant(NetworkBuilder& c, float value) {
  return c.AddConstant(Tensor::Floats({1}, {value}), Dims{});
}

absl::StatusOr<Operand> AlignedOperand(LowerContext& c, ValueId value,
                                       absl::Span<const int64_t> shape) {
  if (const Tensor* constant = c.view().Constant(value)) {
    return AlignedConstant(c, *constant, shape);
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> own, c.ShapeOf(value));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> aligned, AlignedShape(own, shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(value));
  return own.size() == shape.size() ? x : Placed(c, x, aligned);
}

absl::StatusOr<Operand> AlignedConstant(NetworkBuilder& c, const Tensor& tensor,
                                        absl::Span<const int64_t> shape) {
  if (!IsEngineConstant(tensor.type())) return c.Refuse(rule::kPortFormat);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> own, AlignedShape(tensor.dims(), shape));
  if (own.size() < kMaxRank) return c.AddConstant(tensor, PlaceShape(own));
  // Its bytes are in ONNX's order, N, C, D, H, W.
  Dims stored{{own[0], own[1], own[2], own[3], own[4]}};
  return SwapAxes(c, c.AddConstant(tensor, stored), Axis::kD, Axis::kC);
}

KernelRows ElementwiseRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
