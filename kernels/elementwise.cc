// ElementWise: one operation on the elements of two tensors, one rounding. Facts: validators.json
// ElementWise; enums.json ZinIrEWType; numerics.json ew-*.
#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/elementwise.h"
#include "engine/math/exact_elementwise.h"
#include "engine/math/half.h"
#include "engine/math/unary.h"
#include "engine/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/goc.h"
#include "kernels/mil.h"
#include "kernels/mil_operands.h"
#include "kernels/neuron.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ElementWiseParams {
  ElementWiseType type = ElementWiseType::kAdd;
};

// What stands on the right of a type's operation.
enum class Right : uint8_t { kBottom, kSelf, kZero };

struct TypeRow {
  ElementWiseType type;
  const char* name;
  math::BinaryOp function;
  Right right = Right::kBottom;
};

constexpr TypeRow kTypes[] = {
    {ElementWiseType::kAdd, "Add", math::BinaryOp::kAdd},
    {ElementWiseType::kSub, "Sub", math::BinaryOp::kSub},
    {ElementWiseType::kMult, "Mult", math::BinaryOp::kMul},
    {ElementWiseType::kDiv, "Div", math::BinaryOp::kDiv},
    {ElementWiseType::kPower, "Power", math::BinaryOp::kPow},
    {ElementWiseType::kMin, "Min", math::BinaryOp::kMin},
    {ElementWiseType::kMax, "Max", math::BinaryOp::kMax},
    {ElementWiseType::kEqual, "Equal", math::BinaryOp::kEqual},
    {ElementWiseType::kNotEqual, "NotEqual", math::BinaryOp::kNotEqual},
    {ElementWiseType::kLessThan, "LessThan", math::BinaryOp::kLess},
    {ElementWiseType::kLessThanEqual, "LessThanEqual", math::BinaryOp::kLessEqual},
    {ElementWiseType::kGreaterThan, "GreaterThan", math::BinaryOp::kGreater},
    {ElementWiseType::kGreaterThanEqual, "GreaterThanEqual", math::BinaryOp::kGreaterEqual},
    {ElementWiseType::kAbs, "Abs", math::BinaryOp::kMax, Right::kSelf},  // math::Abs
    {ElementWiseType::kSquare, "Square", math::BinaryOp::kMul, Right::kSelf},
    {ElementWiseType::kEqualZero, "EqualZero", math::BinaryOp::kEqual, Right::kZero},
    {ElementWiseType::kNotEqualZero, "NotEqualZero", math::BinaryOp::kNotEqual, Right::kZero},
    {ElementWiseType::kLessThanZero, "LessThanZero", math::BinaryOp::kLess, Right::kZero},
    {ElementWiseType::kLessThanEqualZero, "LessThanEqualZero", math::BinaryOp::kLessEqual,
     Right::kZero},
    {ElementWiseType::kGreaterThanZero, "GreaterThanZero", math::BinaryOp::kGreater, Right::kZero},
    {ElementWiseType::kGreaterThanEqualZero, "GreaterThanEqualZero", math::BinaryOp::kGreaterEqual,
     Right::kZero},
};

// RowOf() takes the type for an index.
constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].type != static_cast<ElementWiseType>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

const TypeRow& RowOf(ElementWiseType type) { return kTypes[static_cast<int>(type)]; }

size_t BottomsOf(ElementWiseType type) { return RowOf(type).right == Right::kBottom ? 2 : 1; }

}  // namespace

absl::Span<const char* const> NamesOf(ElementWiseType) {
  static const auto& names = *[] {
    auto* made = new std::vector<const char*>;
    for (const TypeRow& row : kTypes) made->push_back(row.name);
    return made;
  }();
  return names;
}

namespace {

// A constant of one element for each channel (or for all) is added to the other bottom.
int AddedConstant(const ElementWiseParams& p, Bottoms in) {
  if (p.type != ElementWiseType::kAdd) return -1;
  for (int i : {1, 0}) {
    const Dims &constant = in[i].dims, &other = in[1 - i].dims;
    const bool fits = constant.elements() == constant.c() && constant.c() == other.c();
    if (in[i].is_constant() && in[i].format == Format::kFloat16 && fits) return i;
  }
  return -1;
}

absl::StatusOr<Dims> Shape(const ElementWiseParams& p, Bottoms in) {
  Dims out = in[0].dims;
  if (BottomsOf(p.type) == 1) return out;
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

// The row allows one bottom and two; which of them is the type's to say. That operands broadcast
// is left to Shape: the tables have no rule.
Verdict Validate(const ElementWiseParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  return in.size() == BottomsOf(p.type) ? judge.Accept() : judge.Reject(rule::kBottomCount);
}

// Below A13 the divisor is a constant, else no pattern of the code generator matches.
Verdict Codegen(const ElementWiseParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.type == ElementWiseType::kDiv && !in[1].is_constant() && !judge.FamilyAtLeast(2)) {
    return judge.Reject(rule::kElementwiseDivide);
  }
  return judge.Accept();
}

constexpr Field<ElementWiseParams> kFields[] = {Required<&ElementWiseParams::type>("Type")};

void Compute(const ElementWiseParams& p, const void*, absl::Span<const ConstView> in, View out) {
  const TypeRow& row = RowOf(p.type);
  const math::Extents& x = in[0].dims.extent;
  if (p.type == ElementWiseType::kAbs) {
    math::Abs(in[0].span(), out.span());
  } else if (row.right == Right::kZero) {
    const math::Half zero = math::ToHalf(0.0f);
    math::Binary(row.function, in[0].span(), x, {&zero, 1}, {1, 1, 1, 1, 1}, out.span(), x);
  } else {
    const ConstView& right = in[row.right == Right::kSelf ? 0 : 1];
    math::Binary(row.function, in[0].span(), x, right.span(), right.dims.extent, out.span(),
                 out.dims.extent);
  }
}

UnitStep Step(const ElementWiseParams& p, const void*) {
  if (p.type == ElementWiseType::kAbs) return {{.kind = math::StepKind::kAbs}};
  const TypeRow& row = RowOf(p.type);
  const int right = row.right == Right::kBottom ? 1 : row.right == Right::kSelf ? 0 : -1;
  return {{.kind = math::StepKind::kBinary, .op = row.function}, 0, right};
}

void Exact(const ElementWiseParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const TypeRow& row = RowOf(p.type);
  if (p.type == ElementWiseType::kAbs ||
      row.right == Right::kZero) {  // chooses or compares (ew-compare)
    return Compute(p, nullptr, in, out);
  }
  const ConstView& right = in[row.right == Right::kSelf ? 0 : 1];
  math::ExactBinary(unit.numerics, row.function, in[0].span(), in[0].dims.extent, right.span(),
                    right.dims.extent, out.span(), out.dims.extent);
}

bool Squares(const ElementWiseParams& p, absl::Span<const Operand> bottoms) {
  return p.type == ElementWiseType::kSquare ||
         (p.type == ElementWiseType::kMult && bottoms[0] == bottoms[1]);
}

// MIL's operations that are one type, of two operands or one. logical_not: of 0 and 1, "is 0".
struct NamedType {
  const char* op;
  ElementWiseType type;
};
constexpr NamedType kBinaryOperations[] = {
    {"add", ElementWiseType::kAdd},
    {"sub", ElementWiseType::kSub},
    {"mul", ElementWiseType::kMult},
    {"real_div", ElementWiseType::kDiv},
    {"pow", ElementWiseType::kPower},
    {"minimum", ElementWiseType::kMin},
    {"maximum", ElementWiseType::kMax},
    {"equal", ElementWiseType::kEqual},
    {"not_equal", ElementWiseType::kNotEqual},
    {"less", ElementWiseType::kLessThan},
    {"less_equal", ElementWiseType::kLessThanEqual},
    {"greater", ElementWiseType::kGreaterThan},
    {"greater_equal", ElementWiseType::kGreaterThanEqual},
};
constexpr NamedType kUnaryOperations[] = {
    {"abs", ElementWiseType::kAbs},
    {"square", ElementWiseType::kSquare},
    {"logical_not", ElementWiseType::kEqualZero},
};

absl::Status WriteMil(MilEmitter& e, const ElementWiseParams& p, const Unit& unit) {
  for (const NamedType& row : kBinaryOperations) {
    if (row.type != p.type) continue;
    e.Result(e.Emit(row.op, {{"x", {e.In(0)}}, {"y", {e.In(1)}}}, unit.dims));
    return absl::OkStatus();
  }
  for (const NamedType& row : kUnaryOperations) {
    if (row.type != p.type) continue;
    e.Result(e.Emit(row.op, {{"x", {e.In(0)}}}, unit.dims));
    return absl::OkStatus();
  }
  return absl::UnimplementedError("no MIL operation of this type");
}

// Of types that the compiler was seen to take (netplist.md, "Composed forms").
absl::StatusOr<Operand> Compose(NetworkBuilder& c, const ElementWiseParams& p, const Unit& unit) {
  static constexpr struct {
    ElementWiseType type, by;
    bool or_equal = false;
  } kRecipes[] = {
      {ElementWiseType::kSquare, ElementWiseType::kMult},
      {ElementWiseType::kEqualZero, ElementWiseType::kEqual},
      {ElementWiseType::kNotEqualZero, ElementWiseType::kNotEqual},
      {ElementWiseType::kLessThanZero, ElementWiseType::kLessThan},
      {ElementWiseType::kGreaterThanZero, ElementWiseType::kGreaterThan},
      {ElementWiseType::kLessThanEqual, ElementWiseType::kLessThan, true},
      {ElementWiseType::kLessThanEqualZero, ElementWiseType::kLessThan, true},
      {ElementWiseType::kGreaterThanEqual, ElementWiseType::kGreaterThan, true},
      {ElementWiseType::kGreaterThanEqualZero, ElementWiseType::kGreaterThan, true},
  };
  const auto* recipe = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                    [&](const auto& row) { return row.type == p.type; });
  if (recipe == std::end(kRecipes)) return absl::UnimplementedError("ElementWise of one type");
  const Operand& x = unit.bottoms[0];
  Operand z = x;
  if (RowOf(p.type).right == Right::kBottom) z = unit.bottoms[1];
  if (RowOf(p.type).right == Right::kZero) z = ScalarConstant(c, 0);
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, recipe->by, x, z));
  if (!recipe->or_equal) return y;
  ANEMONE_ASSIGN_OR_RETURN(Operand equal, Combined(c, ElementWiseType::kEqual, x, z));
  return Combined(c, ElementWiseType::kMax, y, equal);
}

const UnitKindOf<ElementWiseParams>& Kind() {
  static const UnitKindOf<ElementWiseParams>& kind =
      *new UnitKindOf<ElementWiseParams>({.type = "ElementWise",
                                          .bottoms = {1, 2},
                                          .shape = Shape,
                                          .validate = Validate,
                                          .codegen = Codegen,
                                          .fields = kFields,
                                          .mil = WriteMil,
                                          .compose = Compose,
                                          .added_constant = AddedConstant,
                                          .compute = Compute,
                                          .step = Step,
                                          .exact = Exact,
                                          .squares = Squares});
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

// Of 0 and 1 the other one.
absl::StatusOr<Operand> Opposite(LowerContext& c, const Operand& x) { return Scaled(c, x, -1, 1); }

// >= is not <. There is no NaN inside the engine, so this is exact.
absl::Status LowerOrEqual(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand a, AlignedOperand(c, node.inputs[0], shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand b, AlignedOperand(c, node.inputs[1], shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, TypeOf(node), a, b));
  ANEMONE_ASSIGN_OR_RETURN(y, Opposite(c, y));
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
  ANEMONE_ASSIGN_OR_RETURN(Operand x, AlignedOperand(c, node.inputs[1 - *infinity], shape));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, inside, x, ScalarConstant(c, end)));
  ANEMONE_ASSIGN_OR_RETURN(y, Opposite(c, y));
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

constexpr const char* kTwo[] = {"x", "y"};

absl::Status BuildCombined(MilContext& c, ElementWiseType type, bool floored) {
  ANEMONE_ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, kTwo));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, type, in.operands[0], in.operands[1]));
  if (floored) {
    ANEMONE_ASSIGN_OR_RETURN(y, Activated(c, NeuronType::kFloor, y));
  }
  return c.Out(y, in.shape);
}

absl::Status BuildBinary(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kBinaryOperations);
  return BuildCombined(c, row.type, /*floored=*/false);
}

absl::Status BuildFloorDiv(MilContext& c) {
  return BuildCombined(c, ElementWiseType::kDiv, /*floored=*/true);
}

absl::Status BuildMapped(MilContext& c, ElementWiseType type) {
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(x, Mapped(c, type, x));
  return c.Out(x, c.ShapeOf(0));
}

absl::Status BuildUnary(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kUnaryOperations);
  return BuildMapped(c, row.type);
}

// The planar engine's elementwise, chosen by hand. How the private operation names what it does is
// not published; `mode` takes the names of the public operations.
absl::Status BuildPlanar(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, c.Text("mode", "add"));
  for (const auto& row : kBinaryOperations) {
    if (mode == row.op) return BuildCombined(c, row.type, /*floored=*/false);
  }
  for (const auto& row : kUnaryOperations) {
    if (mode == row.op) return BuildMapped(c, row.type);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "pe_elementwise, attribute 'mode': want an operation of one rounding, got '", mode, "'"));
}

constexpr MilOperation kOperations[] = {
    {"add", BuildBinary},       {"sub", BuildBinary},           {"mul", BuildBinary},
    {"real_div", BuildBinary},  {"floor_div", BuildFloorDiv},   {"pow", BuildBinary},
    {"minimum", BuildBinary},   {"maximum", BuildBinary},       {"equal", BuildBinary},
    {"not_equal", BuildBinary}, {"less", BuildBinary},          {"less_equal", BuildBinary},
    {"greater", BuildBinary},   {"greater_equal", BuildBinary}, {"abs", BuildUnary},
    {"square", BuildUnary},     {"logical_not", BuildUnary},    {"pe_elementwise", BuildPlanar},
};

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

absl::StatusOr<Operand> Combined(NetworkBuilder& c, ElementWiseType type, const Operand& a,
                                 const Operand& b) {
  return c.Add(Kind(), ElementWiseParams{.type = type}, {a, b});
}

absl::StatusOr<Operand> Mapped(NetworkBuilder& c, ElementWiseType type, const Operand& x) {
  return c.Add(Kind(), ElementWiseParams{.type = type}, {x});
}

absl::StatusOr<Operand> Absolute(NetworkBuilder& c, const Operand& x) {
  return Mapped(c, ElementWiseType::kAbs, x);
}

KernelRows ElementwiseRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
