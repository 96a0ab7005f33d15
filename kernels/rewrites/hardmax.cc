// Hardmax: 1 at the first largest element along an axis, 0 elsewhere. A running sum numbers the
// elements that are equal to the largest one, exactly up to 2048; the element with number 1 is the
// result.
#include <vector>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/integers.h"
#include "kernels/rewrites/cumulative.h"
#include "kernels/units/reduction.h"

namespace anemone {
namespace {

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t given, a.Int("axis", -1));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  const int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(given, rank));
  if (shape[at] > fp16::kLargestExactInteger) {
    return c.NotLowered("Hardmax along more than 2048 elements, which fp16 cannot count");
  }
  const Axis axis = ToEngineAxis(rank, at);
  Operand x = c.In(node.inputs[0]);
  Operand largest = Reduced(c, x, ReduceType::kMax, axis);
  Operand is = Combined(c, ElementWiseType::kEqual, x, largest);
  Operand count = RunningSums(c, is, axis);
  count = Combined(c, ElementWiseType::kEqual, count, ScalarConstant(c, 1));
  Operand y = Combined(c, ElementWiseType::kMult, is, count);
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {{.op = "Hardmax", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows HardmaxRows() { return {{}, kLowerings}; }

}  // namespace anemone
