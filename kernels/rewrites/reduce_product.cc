// ReduceProd, for which no target has a unit (numerics.json red-prod): multiplies one half of the
// elements by the other half until one is left. Each element has at most 2 log2(n) roundings.
// Unlike exp(sum(log)), this also works for negative elements.
#include <optional>
#include <vector>

#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"

namespace anemone {
namespace {

Operand ProductAlong(LowerContext& c, Operand x, Axis axis) {
  std::optional<Operand> left_over;
  while (c.DimsOf(x)[axis] > 1) {
    const int64_t extent = c.DimsOf(x)[axis], half = extent / 2;
    if (extent % 2 == 1) {
      Operand last = Sliced(c, x, axis, extent - 1, 1);
      if (left_over) {
        last = Combined(c, ElementWiseType::kMult, *left_over, last);
      }
      left_over = last;
    }
    Operand front = Sliced(c, x, axis, 0, half);
    Operand back = Sliced(c, x, axis, half, half);
    x = Combined(c, ElementWiseType::kMult, front, back);
  }
  if (!left_over) return x;
  return Combined(c, ElementWiseType::kMult, x, *left_over);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t noop, a.Int("noop_with_empty_axes", 0));
  a.Ignore("keepdims");  // follows from the shape of the output
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 1, {}));
  Operand x = c.In(node.inputs[0]);
  const int rank = static_cast<int>(from.size());
  const bool all = axes.empty() && noop == 0;
  for (int i = 0; all && i < rank; ++i) axes.push_back(i);
  for (int64_t axis : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, rank));
    if (from[at] == 0) return c.NotLowered("ReduceProd over an axis of extent 0");
    x = ProductAlong(c, x, ToEngineAxis(rank, at));
  }
  if (from.size() != to.size()) {
    x = ToOnnxOrder(c, x, rank);
    x = FromOnnxOrder(c, x, to);
  }
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "ReduceProd", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows ReduceProductRows() { return {{}, kLowerings}; }

}  // namespace anemone
