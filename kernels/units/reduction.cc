// Reduction: Sum, Avg, Max or Min over a set of axes, accumulated in a wide format and rounded
// once. The result may overflow fp16, as on the engine. Facts: validators.json Reduction;
// numerics.json red-*.
#include "kernels/units/reduction.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/affine.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/reshape.h"
#include "math/elementwise/elementwise.h"
#include "math/exact/exact_elementwise.h"
#include "math/exact/exact_reduce.h"
#include "math/reduce/reduce.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ReductionParams {
  ReduceType type = ReduceType::kSum;
  std::vector<Axis> axes;
  bool square = false;  // squares the reduced value
};

absl::StatusOr<Dims> Shape(const ReductionParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (Axis axis : p.axes) out[axis] = 1;
  return out;
}

Verdict Validate(const ReductionParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.square && !judge.Has(Cap::kSquareAfterReduction)) {
    return judge.Reject(rule::kReductionSquare);
  }
  return judge.Accept();
}

bool Squares(const ReductionParams& p) { return p.square; }

// The key of the square is not published. This name is from Anemone's tables.
constexpr Field<ReductionParams> kFields[] = {
    Required<&ReductionParams::type>("Type"),
    Required<&ReductionParams::axes>("Dimension"),
    Key<&ReductionParams::square, Plain, Squares>("SquareAfterReduce"),
};

void Compute(const ReductionParams& p, const void*, absl::Span<const ConstView> in, View out) {
  static constexpr math::ReduceOp kOps[] = {math::ReduceOp::kSum, math::ReduceOp::kMean,
                                            math::ReduceOp::kMax, math::ReduceOp::kMin};
  math::AxisSet axes;
  for (Axis axis : p.axes) axes.Add(static_cast<int>(axis));
  math::Reduce(kOps[static_cast<int>(p.type)], in[0].dims.extent, axes, in[0].span(), out.span());
  // Silicon rounds before the square, whether fused or not (conflicts.md C-reduce-square).
  if (p.square) {
    math::Binary(math::BinaryOp::kMul, out.span(), out.dims.extent, out.span(), out.dims.extent,
                 out.span(), out.dims.extent);
  }
}

// Whether a preceding square is summed without rounding (numerics.json red-l2).
bool TakesSquares(const ReductionParams& p, const math::Numerics& n) {
  return p.type == ReduceType::kSum && n.red_l2 == math::RedL2::kMacSquares;
}

void Exact(const ReductionParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  // Max and Min select an element, without rounding (red-max).
  if (p.type == ReduceType::kMax || p.type == ReduceType::kMin) {
    ReductionParams plain = p;
    plain.square = false;
    Compute(plain, nullptr, in, out);
  } else {
    math::ExactReduce(unit.numerics,
                      p.type == ReduceType::kSum ? math::ReduceOp::kSum : math::ReduceOp::kMean,
                      unit.squares, in[0].dims.extent, MathAxes(p.axes), in[0].span(), out.span());
  }
  if (p.square) {
    math::ExactBinary(unit.numerics, math::BinaryOp::kMul, out.span(), out.dims.extent, out.span(),
                      out.dims.extent, out.span(), out.dims.extent);
  }
}

std::shared_ptr<const void> Permuted(const ReductionParams& p, const Permutation& order) {
  return std::make_shared<const ReductionParams>(
      ReductionParams{p.type, Permute(p.axes, order), p.square});
}

absl::Status WriteMil(const ReductionParams& p, const Unit& unit, MilEmitter& e) {
  static constexpr const char* kOps[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"};
  std::vector<int64_t> axes;
  for (Axis axis : p.axes) {
    if (e.ToMilAxis(axis) >= 0) axes.push_back(e.ToMilAxis(axis));
  }
  // In MIL, no axes would mean all axes.
  if (axes.empty()) return absl::UnimplementedError("a reduction over no axes");
  std::sort(axes.begin(), axes.end());
  std::string y = e.Emit(
      kOps[static_cast<int>(p.type)],
      {{"x", {e.In(0)}}, {"axes", {e.Ints(axes)}}, {"keep_dims", {e.Bool(true)}}}, unit.dims);
  if (p.square) y = e.Emit("square", {{"x", {y}}}, unit.dims);
  e.Result(std::move(y));
  return absl::OkStatus();
}

std::optional<Arithmetic> ArithmeticOf(const ReductionParams& p, Bottoms,
                                       absl::Span<const Tensor>) {
  if (p.type != ReduceType::kSum && p.type != ReduceType::kAvg) return std::nullopt;
  return Arithmetic{Arithmetic::Kind::kReduction};
}

const UnitKindOf<ReductionParams>& Kind() {
  static const UnitKindOf<ReductionParams> kind({
      .type = "Reduction",
      .family = &rule::kUnitFamily,
      .bottoms = {1, 1, &rule::kReductionBottoms},
      .arithmetic = ArithmeticOf,
      .permuted = Permuted,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
      .fuse = {.takes_squares = TakesSquares},
  });
  return kind;
}

// An operator as a reduction with an operation before and after it.
struct Recipe {
  const char* op;
  const char* mil;
  ReduceType type;
  enum class Before : uint8_t { kNothing, kAbs, kSquare } before = Before::kNothing;
  enum class After : uint8_t { kNothing, kSqrt, kLog } after = After::kNothing;
};

// Squares are rounded to fp16: an element of 256 or more makes the sum infinite (numerics.json
// red-l2).
constexpr Recipe kRecipes[] = {
    {"ReduceSum", "reduce_sum", ReduceType::kSum},
    {"ReduceMean", "reduce_mean", ReduceType::kAvg},
    {"ReduceMax", "reduce_max", ReduceType::kMax},
    {"ReduceMin", "reduce_min", ReduceType::kMin},
    {"ReduceL1", "reduce_l1_norm", ReduceType::kSum, Recipe::Before::kAbs},
    {"ReduceL2", "reduce_l2_norm", ReduceType::kSum, Recipe::Before::kSquare, Recipe::After::kSqrt},
    {"ReduceSumSquare", "reduce_sum_square", ReduceType::kSum, Recipe::Before::kSquare},
    {"ReduceLogSum", "reduce_log_sum", ReduceType::kSum, Recipe::Before::kNothing,
     Recipe::After::kLog},
};

const Recipe& RecipeOf(const Node& node) { return RowNamed(node.op_type, kRecipes); }

Operand ReducedBy(NetworkBuilder& c, const Recipe& recipe, Operand y, absl::Span<const Axis> axes) {
  if (recipe.before == Recipe::Before::kAbs) {
    y = Absolute(c, y);
  } else if (recipe.before == Recipe::Before::kSquare) {
    y = Combined(c, ElementWiseType::kMult, y, y);
  }
  y = Reduced(c, y, recipe.type, axes);
  if (recipe.after == Recipe::After::kSqrt) return Activated(c, NeuronType::kSqrt, y);
  if (recipe.after == Recipe::After::kLog) return NaturalLog(c, y);
  return y;
}

// log(sum(exp(x))), computed as m + log(sum(exp(x - m))), where m is the largest element, so it
// does not overflow. The absolute error is about 1e-3, or one ulp of the result if that is larger.
Operand LogSumExp(NetworkBuilder& c, const Operand& x, absl::Span<const Axis> axes) {
  Operand largest = Reduced(c, x, ReduceType::kMax, axes);
  Operand y = Combined(c, ElementWiseType::kSub, x, largest);
  y = Activated(c, NeuronType::kExp, y);
  y = Reduced(c, y, ReduceType::kSum, axes);
  y = NaturalLog(c, y);
  return Combined(c, ElementWiseType::kAdd, y, largest);
}

// The operand and the axes of an ONNX reduction. There are no axes if it is the identity.
struct Request {
  Operand x;
  std::vector<Axis> axes;
  bool identity = false;
};

absl::StatusOr<Request> ReadRequest(LowerContext& c, const Node& node) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t noop, a.Int("noop_with_empty_axes", 0));
  a.Ignore("keepdims");  // implied by the shape of the output
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 1, {}));
  Request request;
  request.x = c.In(node.inputs[0]);
  int rank = static_cast<int>(shape.size());
  if (axes.empty()) {
    request.identity = noop != 0;
    if (noop == 0) request.axes = AxesFrom(rank, 0);
  }
  for (int64_t axis : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
    request.axes.push_back(ToEngineAxis(rank, at));
  }
  return request;
}

// Outputs the reduced value. Without keepdims it is reshaped, because the reduced axes are dropped.
absl::Status OutReduced(LowerContext& c, const Node& node, Operand y) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (from.size() != to.size()) {
    y = ToOnnxOrder(c, y, static_cast<int>(from.size()));
    y = FromOnnxOrder(c, y, to);
  }
  return c.Out(node.outputs[0], y);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const Recipe& recipe = RecipeOf(node);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  bool composed =
      recipe.before != Recipe::Before::kNothing || recipe.after != Recipe::After::kNothing;
  if (request.identity && composed) {
    return c.NotLowered("a reduction over no axes that still changes its elements");
  }
  Operand y = ReducedBy(c, recipe, request.x, request.axes);
  return OutReduced(c, node, y);
}

absl::Status LowerLogSumExp(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  if (request.identity) return OutReduced(c, node, request.x);
  Operand y = LogSumExp(c, request.x, request.axes);
  return OutReduced(c, node, y);
}

// GlobalAveragePool and GlobalMaxPool reduce all axes after N and C.
absl::Status LowerGlobalPool(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  Operand x = c.In(node.inputs[0]);
  const ReduceType type = node.op_type == "GlobalAveragePool" ? ReduceType::kAvg : ReduceType::kMax;
  x = Reduced(c, x, type, AxesFrom(static_cast<int>(shape.size()), 2));
  return c.Out(node.outputs[0], x);
}

bool IsInteger(absl::string_view dtype) {
  return absl::StartsWith(dtype, "int") || absl::StartsWith(dtype, "uint");
}

// Without `axes`, all axes are reduced. The reduced axes are dropped unless keep_dims.
absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> given, c.Ints("axes", {}));
  ANEMONE_ASSIGN_OR_RETURN(bool keep, c.Bool("keep_dims", false));
  Operand x = c.In(0);
  const int rank = c.rank(0);
  std::vector<bool> reduced(rank, given.empty());
  for (int64_t axis : given) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
    reduced[at] = true;
  }
  std::vector<Axis> axes;
  std::vector<int64_t> shape;
  for (int i = 0; i < rank; ++i) {
    if (reduced[i]) axes.push_back(ToEngineAxis(rank, i));
    if (!reduced[i] || keep) shape.push_back(reduced[i] ? 1 : c.ShapeOf(0)[i]);
  }
  const Recipe* recipe = std::find_if(std::begin(kRecipes), std::end(kRecipes),
                                      [&](const Recipe& r) { return c.call().op == r.mil; });
  if (recipe == std::end(kRecipes)) {
    x = LogSumExp(c, x, axes);
  } else {
    const bool converted = c.route() == Route::kMil;  // the rule is in Core ML's converter
    if (converted && recipe->type == ReduceType::kMin && IsInteger(c.call().arguments[0].dtype)) {
      ANEMONE_RETURN_IF_ERROR(c.Requires(rule::kReductionIntegerMin));
    }
    x = ReducedBy(c, *recipe, x, axes);
  }
  if (!keep) {
    x = ReshapeInOnnxOrder(c, x, rank, shape);
  }
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {
    {"reduce_sum", Build},        {"reduce_mean", Build},    {"reduce_max", Build},
    {"reduce_min", Build},        {"reduce_l1_norm", Build}, {"reduce_l2_norm", Build},
    {"reduce_sum_square", Build}, {"reduce_log_sum", Build}, {"reduce_log_sum_exp", Build},
};

constexpr Lowering kLowerings[] = {
    {.op = "ReduceSum", .lower = Lower},
    {.op = "ReduceMean", .lower = Lower},
    {.op = "ReduceMax", .lower = Lower},
    {.op = "ReduceMin", .lower = Lower},
    {.op = "ReduceL1", .lower = Lower},
    {.op = "ReduceL2", .lower = Lower},
    {.op = "ReduceSumSquare", .lower = Lower},
    {.op = "ReduceLogSum", .lower = Lower},
    {.op = "ReduceLogSumExp", .lower = LowerLogSumExp},
    {.op = "GlobalAveragePool", .lower = LowerGlobalPool},
    {.op = "GlobalMaxPool", .lower = LowerGlobalPool},
};

}  // namespace

absl::Span<const char* const> NamesOf(ReduceType) {
  static constexpr const char* kNames[] = {"Sum", "Avg", "Max", "Min"};
  return kNames;
}

Operand Reduced(NetworkBuilder& c, const Operand& x, ReduceType type, absl::Span<const Axis> axes) {
  ReductionParams p{.type = type, .axes = {}};
  for (Axis axis : axes) {
    if (c.DimsOf(x)[axis] != 1) p.axes.push_back(axis);
  }
  std::sort(p.axes.begin(), p.axes.end());
  p.axes.erase(std::unique(p.axes.begin(), p.axes.end()), p.axes.end());
  if (p.axes.empty()) return x;
  return c.Add(Kind(), std::move(p), {x});
}

std::vector<Axis> AxesFrom(int rank, int first) {
  std::vector<Axis> axes;
  for (int i = first; i < rank; ++i) axes.push_back(ToEngineAxis(rank, i));
  return axes;
}

KernelRows ReductionRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
