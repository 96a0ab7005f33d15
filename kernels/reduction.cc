// Reduction: Sum, Avg, Max or Min over a set of axes, wide accumulation, one rounding; the result
// may overflow fp16, as on the engine. Facts: validators.json Reduction; numerics.json red-*.
#include "kernels/reduction.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/reduce.h"
#include "kernels/attributes.h"
#include "kernels/elementwise.h"
#include "kernels/neuron.h"
#include "kernels/node_inputs.h"
#include "kernels/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ReductionParams {
  ReduceType type;
  std::vector<Axis> axes;
};

absl::StatusOr<Dims> Shape(const ReductionParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (Axis axis : p.axes) out[axis] = 1;
  return out;
}

Verdict Validate(const ReductionParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return judge.FamilyAtLeast(2) ? judge.Accept() : judge.Reject(rule::kReductionFamily);
}

std::string ShowType(const ReductionParams& p) {
  static constexpr const char* kNames[] = {"Sum", "Avg", "Max", "Min"};
  return kNames[static_cast<int>(p.type)];
}

std::string ShowDimension(const ReductionParams& p) {
  std::string shown;
  for (Axis axis : p.axes) absl::StrAppend(&shown, shown.empty() ? "" : " ", AxisName(axis));
  return shown;
}

constexpr Field<ReductionParams> kFields[] = {{"Type", ShowType}, {"Dimension", ShowDimension}};

void Compute(const ReductionParams& p, const void*, absl::Span<const ConstView> in, View out) {
  static constexpr math::ReduceOp kOps[] = {math::ReduceOp::kSum, math::ReduceOp::kMean,
                                            math::ReduceOp::kMax, math::ReduceOp::kMin};
  math::AxisSet axes;
  for (Axis axis : p.axes) axes.Add(static_cast<int>(axis));
  math::Reduce(kOps[static_cast<int>(p.type)], in[0].dims.extent, axes, in[0].span(), out.span());
}

const UnitKindOf<ReductionParams>& Kind() {
  static const UnitKindOf<ReductionParams>& kind =
      *new UnitKindOf<ReductionParams>({.type = "Reduction",
                                        .shape = Shape,
                                        .validate = Validate,
                                        .fields = kFields,
                                        .compute = Compute});
  return kind;
}

// What an operator does before, in and after the reduction.
struct Recipe {
  const char* op;
  ReduceType type;
  enum class Before : uint8_t { kNothing, kAbs, kSquare } before = Before::kNothing;
  enum class After : uint8_t { kNothing, kSqrt, kLog } after = After::kNothing;
};

// Squares are rounded to fp16: an element of 256 or more makes the sum infinite (numerics.json
// red-l2).
constexpr Recipe kRecipes[] = {
    {"ReduceSum", ReduceType::kSum},
    {"ReduceMean", ReduceType::kAvg},
    {"ReduceMax", ReduceType::kMax},
    {"ReduceMin", ReduceType::kMin},
    {"ReduceL1", ReduceType::kSum, Recipe::Before::kAbs},
    {"ReduceL2", ReduceType::kSum, Recipe::Before::kSquare, Recipe::After::kSqrt},
    {"ReduceSumSquare", ReduceType::kSum, Recipe::Before::kSquare},
    {"ReduceLogSum", ReduceType::kSum, Recipe::Before::kNothing, Recipe::After::kLog},
};

const Recipe& RecipeOf(const Node& node) {
  const Recipe* recipe = kRecipes;
  while (node.op_type != recipe->op) ++recipe;
  return *recipe;
}

// The axes and the operand of an ONNX reduction; no axes if it does nothing.
struct Request {
  Operand x;
  std::vector<Axis> axes;
  bool identity = false;
};

absl::StatusOr<Request> ReadRequest(LowerContext& c, const Node& node) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t noop, a.Int("noop_with_empty_axes", 0));
  a.Ignore("keepdims");  // the output's shape says it
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 1, {}));
  Request request;
  ANEMONE_ASSIGN_OR_RETURN(request.x, c.In(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  if (axes.empty()) {
    request.identity = noop != 0;
    for (int i = 0; noop == 0 && i < rank; ++i) axes.push_back(i);
  }
  for (int64_t axis : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
    request.axes.push_back(AxisOf(rank, at));
  }
  return request;
}

// The reduced value as the node's output: with keepdims it lies there already, else its axes move
// together.
absl::Status OutReduced(LowerContext& c, const Node& node, Operand y) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (from.size() != to.size()) {
    ANEMONE_ASSIGN_OR_RETURN(y, Flat(c, y, static_cast<int>(from.size())));
    ANEMONE_ASSIGN_OR_RETURN(y, Placed(c, y, to));
  }
  return c.Out(node.outputs[0], y);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const Recipe& recipe = RecipeOf(node);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  Operand y = request.x;
  bool composed =
      recipe.before != Recipe::Before::kNothing || recipe.after != Recipe::After::kNothing;
  if (request.identity && composed) {
    return c.NotLowered("a reduction over no axes that still maps its elements");
  }
  if (recipe.before == Recipe::Before::kAbs) {
    ANEMONE_ASSIGN_OR_RETURN(y, Absolute(c, y));
  } else if (recipe.before == Recipe::Before::kSquare) {
    ANEMONE_ASSIGN_OR_RETURN(y, Combined(c, ElementWiseType::kMult, y, y));
  }
  ANEMONE_ASSIGN_OR_RETURN(y, Reduced(c, y, recipe.type, request.axes));
  if (recipe.after == Recipe::After::kSqrt) {
    ANEMONE_ASSIGN_OR_RETURN(y, Activated(c, NeuronType::kSqrt, y));
  } else if (recipe.after == Recipe::After::kLog) {
    ANEMONE_ASSIGN_OR_RETURN(y, NaturalLog(c, y));
  }
  return OutReduced(c, node, y);
}

// log(sum(exp(x))) = m + log(sum(exp(x - m))), m the largest element: nothing overflows. Absolute
// error about 1e-3, or an ulp of the result.
absl::Status LowerLogSumExp(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Request request, ReadRequest(c, node));
  if (request.identity) return OutReduced(c, node, request.x);
  ANEMONE_ASSIGN_OR_RETURN(Operand largest, Reduced(c, request.x, ReduceType::kMax, request.axes));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, Combined(c, ElementWiseType::kSub, request.x, largest));
  ANEMONE_ASSIGN_OR_RETURN(y, Activated(c, NeuronType::kExp, y));
  ANEMONE_ASSIGN_OR_RETURN(y, Reduced(c, y, ReduceType::kSum, request.axes));
  ANEMONE_ASSIGN_OR_RETURN(y, NaturalLog(c, y));
  ANEMONE_ASSIGN_OR_RETURN(y, Combined(c, ElementWiseType::kAdd, y, largest));
  return OutReduced(c, node, y);
}

// GlobalAveragePool and GlobalMaxPool: all axes behind N and C.
absl::Status LowerGlobalPool(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  std::vector<Axis> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(AxisOf(rank, i));
  bool average = node.op_type == "GlobalAveragePool";
  ANEMONE_ASSIGN_OR_RETURN(x, Reduced(c, x, average ? ReduceType::kAvg : ReduceType::kMax, axes));
  return c.Out(node.outputs[0], x);
}

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

absl::StatusOr<Operand> Reduced(NetworkBuilder& c, const Operand& x, ReduceType type,
                                absl::Span<const Axis> axes) {
  ReductionParams p{type, {}};
  for (Axis axis : axes) {
    if (c.DimsOf(x)[axis] != 1) p.axes.push_back(axis);
  }
  std::sort(p.axes.begin(), p.axes.end());
  p.axes.erase(std::unique(p.axes.begin(), p.axes.end()), p.axes.end());
  if (p.axes.empty()) return x;
  return c.Add(Kind(), std::move(p), {x});
}

KernelRows ReductionRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
