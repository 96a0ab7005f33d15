// CenterCropPad: each axis is cropped, or padded with zeros, around its center. Exact.
#include <vector>

#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/lowering.h"
#include "kernels/shared/borders.h"
#include "kernels/units/input_view.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// If the difference is odd, (from - to) / 2 is rounded down: a crop removes the extra element at
// the end, and padding adds it at the end.
Operand Centered(LowerContext& c, const Operand& x, Axis axis, int64_t to) {
  const int64_t from = c.DimsOf(x)[axis];
  if (to <= from) return Sliced(c, x, axis, (from - to) / 2, to);
  const int64_t before = (to - from) / 2;
  return Between(c, x, axis, before, to - from - before);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  a.Ignore("axes");  // follows from the shapes
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (from.size() != to.size()) return absl::InvalidArgumentError("CenterCropPad changes the rank");
  Operand x = c.In(node.inputs[0]);
  const int rank = static_cast<int>(from.size());
  for (int i = 0; i < rank; ++i) {
    if (to[i] < 1) return c.Refuse(rule::kEmptyTensor);
    x = Centered(c, x, ToEngineAxis(rank, i), to[i]);
  }
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "CenterCropPad", .rewritten = true, .lower = Lower}};

}  // namespace

KernelRows CenterCropPadRows() { return {{}, kLowerings}; }

}  // namespace anemone
