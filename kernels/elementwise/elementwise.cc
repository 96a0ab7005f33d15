// ElementWise: an operation on the elements of one or two tensors, with one rounding. Facts:
// validators.json ElementWise; enums.json ZinIrEWType; numerics.json ew-*.
#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_operands.h"
#include "math/elementwise/elementwise.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_elementwise.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ElementWiseParams {
  ElementWiseType type = ElementWiseType::kAdd;
};

// The right operand of the operation of a type.
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

// RowOf() uses the type as an index.
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

// The index of a bottom that is a constant with one element for each channel, or for all, and is
// added to the other bottom; -1 if there is none.
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

// The row allows one or two bottoms, but each type allows only one of these. Shape() checks that
// the operands broadcast, because the tables have no rule for it.
Verdict Validate(const ElementWiseParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  return in.size() == BottomsOf(p.type) ? judge.Accept() : judge.Reject(rule::kBottomCount);
}

// Before A13 the divisor must be a constant. Otherwise no pattern of the code generator matches.
Verdict Codegen(const ElementWiseParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.type == ElementWiseType::kDiv && !in[1].is_constant()) {
    return judge.Requires(rule::kElementwiseDivide);
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
      row.right == Right::kZero) {  // selects or compares, without rounding (ew-compare)
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

// MIL's operations that are a single type, with two operands or one.
struct NamedType {
  const char* op;
  ElementWiseType type;
};
constexpr NamedType kBinaryOperations[] = {
    {"add", ElementWiseType::kAdd},     {"sub", ElementWiseType::kSub},
    {"mul", ElementWiseType::kMult},    {"real_div", ElementWiseType::kDiv},
    {"pow", ElementWiseType::kPower},   {"minimum", ElementWiseType::kMin},
    {"maximum", ElementWiseType::kMax},
};
constexpr NamedType kUnaryOperations[] = {
    {"abs", ElementWiseType::kAbs},
    {"square", ElementWiseType::kSquare},
};

// MIL's comparisons: the type with two operands, and that with 0.
struct Comparison {
  const char* op;
  ElementWiseType type, with_zero;
};
constexpr Comparison kComparisons[] = {
    {"equal", ElementWiseType::kEqual, ElementWiseType::kEqualZero},
    {"not_equal", ElementWiseType::kNotEqual, ElementWiseType::kNotEqualZero},
    {"less", ElementWiseType::kLessThan, ElementWiseType::kLessThanZero},
    {"less_equal", ElementWiseType::kLessThanEqual, ElementWiseType::kLessThanEqualZero},
    {"greater", ElementWiseType::kGreaterThan, ElementWiseType::kGreaterThanZero},
    {"greater_equal", ElementWiseType::kGreaterThanEqual, ElementWiseType::kGreaterThanEqualZero},
};

// A comparison gives booleans in MIL, and 0 and 1 as fp16 on the engine: a cast follows it.
absl::Status WriteMil(const ElementWiseParams& p, const Unit& unit, MilEmitter& e) {
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
  for (const Comparison& row : kComparisons) {
    if (row.type != p.type && row.with_zero != p.type) continue;
    const std::string y = row.type == p.type ? e.In(1) : e.Half(0);
    const MilType truth{"bool", e.ShapeOf(unit.dims)};
    e.Result(e.Numbers(e.EmitAll(row.op, {{"x", {e.In(0)}}, {"y", {y}}}, {truth})[0], unit.dims));
    return absl::OkStatus();
  }
  return absl::InternalError("a type without a MIL operation");
}

// Composes types that have not been seen in netplists from types that have (netplist.md, "Composed
// forms").
std::optional<Operand> Compose(const ElementWiseParams& p, const Unit& unit, NetworkBuilder& c) {
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
  if (recipe == std::end(kRecipes)) return std::nullopt;
  const Operand& x = unit.bottoms[0];
  Operand z = x;
  if (RowOf(p.type).right == Right::kBottom) z = unit.bottoms[1];
  if (RowOf(p.type).right == Right::kZero) z = ScalarConstant(c, 0);
  Operand y = Combined(c, recipe->by, x, z);
  if (!recipe->or_equal) return y;
  Operand equal = Combined(c, ElementWiseType::kEqual, x, z);
  return Combined(c, ElementWiseType::kMax, y, equal);
}

std::optional<Arithmetic> ArithmeticOf(const ElementWiseParams& p, Bottoms,
                                       absl::Span<const Tensor>) {
  switch (p.type) {
    case ElementWiseType::kAdd:
      return Arithmetic{Arithmetic::Kind::kSum};
    case ElementWiseType::kSub:
      return Arithmetic{Arithmetic::Kind::kDifference};
    case ElementWiseType::kMult:
      return Arithmetic{Arithmetic::Kind::kProduct};
    default:
      return std::nullopt;
  }
}

const UnitKindOf<ElementWiseParams>& Kind() {
  static const UnitKindOf<ElementWiseParams> kind({
      .type = "ElementWise",
      .bottoms = {1, 2},
      .arithmetic = ArithmeticOf,
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields, .mil = WriteMil, .compose = Compose},
      .run = {.compute = Compute, .step = Step},
      .exact = {.compute = Exact},
      .fuse = {.added_constant = AddedConstant, .squares = Squares},
  });
  return kind;
}

constexpr const char* kTwo[] = {"x", "y"};

absl::Status BuildCombined(MilContext& c, ElementWiseType type, bool floored) {
  ANEMONE_ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, kTwo));
  Operand y = Combined(c, type, in.operands[0], in.operands[1]);
  if (floored) {
    y = Activated(c, NeuronType::kFloor, y);
  }
  return c.Out(y, in.shape);
}

absl::Status BuildBinary(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kBinaryOperations);
  return BuildCombined(c, row.type, /*floored=*/false);
}

absl::Status BuildComparison(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kComparisons);
  return BuildCombined(c, row.type, /*floored=*/false);
}

absl::Status BuildFloorDiv(MilContext& c) {
  return BuildCombined(c, ElementWiseType::kDiv, /*floored=*/true);
}

absl::Status BuildMapped(MilContext& c, ElementWiseType type) {
  Operand x = c.In(0);
  x = Mapped(c, type, x);
  return c.Out(x, c.ShapeOf(0));
}

absl::Status BuildUnary(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kUnaryOperations);
  return BuildMapped(c, row.type);
}

// Of 0 or 1: whether it is 0.
absl::Status BuildNot(MilContext& c) { return BuildMapped(c, ElementWiseType::kEqualZero); }

// The private operation that selects the planar engine for an elementwise operation. Its names for
// the operations are not published; `mode` has the names of the public operations.
absl::Status BuildPlanar(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, c.Text("mode", "add"));
  for (const auto& row : kBinaryOperations) {
    if (mode == row.op) return BuildCombined(c, row.type, /*floored=*/false);
  }
  for (const auto& row : kComparisons) {
    if (mode == row.op) return BuildCombined(c, row.type, /*floored=*/false);
  }
  for (const auto& row : kUnaryOperations) {
    if (mode == row.op) return BuildMapped(c, row.type);
  }
  if (mode == "logical_not") return BuildNot(c);
  return absl::InvalidArgumentError(absl::StrCat(
      "pe_elementwise, attribute 'mode': want a binary elementwise operation, got '", mode, "'"));
}

constexpr MilOperation kOperations[] = {
    {"add", BuildBinary},         {"sub", BuildBinary},
    {"mul", BuildBinary},         {"real_div", BuildBinary},
    {"floor_div", BuildFloorDiv}, {"pow", BuildBinary},
    {"minimum", BuildBinary},     {"maximum", BuildBinary},
    {"equal", BuildComparison},   {"not_equal", BuildComparison},
    {"less", BuildComparison},    {"less_equal", BuildComparison},
    {"greater", BuildComparison}, {"greater_equal", BuildComparison},
    {"abs", BuildUnary},          {"square", BuildUnary},
    {"logical_not", BuildNot},    {"pe_elementwise", BuildPlanar},
};

}  // namespace

Operand Combined(NetworkBuilder& c, ElementWiseType type, const Operand& a, const Operand& b) {
  return c.Add(Kind(), ElementWiseParams{.type = type}, {a, b});
}

Operand Mapped(NetworkBuilder& c, ElementWiseType type, const Operand& x) {
  return c.Add(Kind(), ElementWiseParams{.type = type}, {x});
}

Operand Absolute(NetworkBuilder& c, const Operand& x) {
  return Mapped(c, ElementWiseType::kAbs, x);
}

KernelRows ElementwiseRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
