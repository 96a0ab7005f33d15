// CumSum and CumProd, for which no target has a unit (op_matrix.json cumsum). Short axes are
// computed by doubling, with log2(extent) roundings; sums along long axes by a matrix of ones and
// zeros.
#include "kernels/rewrites/cumulative.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/axis_matrix.h"
#include "kernels/shared/borders.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"

namespace anemone {
namespace {

struct Form {
  Axis axis = Axis::kW;
  bool exclusive = false, reverse = false;
  ElementWiseType type = ElementWiseType::kAdd;
};

// The inclusive scan. After step k, each element combines itself and the elements before it (or
// after it, if reversed), 2^k in all.
Operand Accumulated(NetworkBuilder& c, Operand x, const Form& form) {
  const int64_t extent = c.DimsOf(x)[form.axis];
  for (int64_t shift = 1; shift < extent; shift *= 2) {
    // `first`: the elements that have no element `shift` positions before (or after) them.
    const int64_t left = extent - shift;
    Operand first = Sliced(c, x, form.axis, form.reverse ? left : 0, shift);
    Operand low = Sliced(c, x, form.axis, 0, left);
    Operand high = Sliced(c, x, form.axis, shift, left);
    Operand both = Combined(c, form.type, low, high);
    std::vector<Operand> parts = {first, both};
    if (form.reverse) std::swap(parts[0], parts[1]);
    x = Concatenated(c, std::move(parts), form.axis);
  }
  return x;
}

// An exclusive scan is the inclusive scan shifted by one; the first element is the identity (0, or
// 1 for products).
Operand Shifted(NetworkBuilder& c, const Operand& x, const Form& form) {
  const Dims dims = c.DimsOf(x);
  const float none = form.type == ElementWiseType::kMult ? 1 : 0;
  if (dims[form.axis] == 1) return Filled(c, none, dims);
  Operand rest = Sliced(c, x, form.axis, form.reverse ? 1 : 0, dims[form.axis] - 1);
  return Between(c, rest, form.axis, form.reverse ? 0 : 1, form.reverse ? 1 : 0, {.value = none});
}

Operand ByDoubling(NetworkBuilder& c, Operand x, const Form& form) {
  x = Accumulated(c, x, form);
  return form.exclusive ? Shifted(c, x, form) : x;
}

// Longer sums use the matrix: at most three units and one rounding, instead of five units and one
// rounding for each doubling.
constexpr int64_t kMostDoubled = 32;

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t exclusive, a.Int("exclusive", 0));
  ANEMONE_ASSIGN_OR_RETURN(int64_t reverse, a.Int("reverse", 0));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 1, {}));
  if (axes.size() != 1) return absl::InvalidArgumentError("axis: want one integer");
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axes[0], rank));
  Form form{ToEngineAxis(rank, at), exclusive != 0, reverse != 0};
  if (node.op_type == "CumProd") form.type = ElementWiseType::kMult;
  const bool long_sum = node.op_type == "CumSum" && shape[at] > kMostDoubled;
  x = long_sum ? RunningSums(c, x, form.axis, form.exclusive, form.reverse)
               : ByDoubling(c, x, form);
  return c.Out(node.outputs[0], x);
}

absl::Status Build(MilContext& c) {
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", 0));
  ANEMONE_ASSIGN_OR_RETURN(form.exclusive, c.Bool("exclusive", false));
  ANEMONE_ASSIGN_OR_RETURN(form.reverse, c.Bool("reverse", false));
  Operand x = c.In(0);
  form.axis = ToEngineAxis(c.rank(0), at);
  x = ByDoubling(c, x, form);
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"cumsum", Build}};

constexpr Lowering kLowerings[] = {{.op = "CumSum", .rewritten = true, .lower = Lower},
                                   {.op = "CumProd", .rewritten = true, .lower = Lower}};

}  // namespace

Operand RunningSums(NetworkBuilder& c, const Operand& x, Axis axis, bool exclusive, bool reverse) {
  const int64_t extent = c.DimsOf(x)[axis];
  if (extent > MostMatrixElements() / extent) {
    return RefuseOverLimit(c, ModelLimit::kMatrixElements, "running sum whose matrix would have");
  }
  Tensor matrix = Tensor::Zeros(DataType::kFloat, {extent, extent});
  auto* to = matrix.mutable_data<float>();
  for (int64_t o = 0; o < extent; ++o) {
    for (int64_t i = 0; i < extent; ++i) {
      const int64_t before = reverse ? i - o : o - i;
      to[o * extent + i] = before > 0 || (before == 0 && !exclusive) ? 1 : 0;
    }
  }
  return TimesMatrix(c, x, axis, matrix);
}

KernelRows CumulativeRows() { return {{}, kLowerings, kOperations}; }

}  // namespace anemone
