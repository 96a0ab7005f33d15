// L2Normalization: x / sqrt(sum of squares over a set of axes). Native on every target. Facts:
// validators.json L2Norm; numerics.json nrm-l2; no netplist form is known.
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/layer_normalization.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct L2NormParams {
  std::vector<Axis> axes;
  float epsilon = 0;
};

absl::StatusOr<Dims> Shape(const L2NormParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const L2NormParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  for (Axis axis : p.axes) {
    if (axis == Axis::kN) return judge.Reject(rule::kL2NormBatch);
  }
  return judge.Accept();
}

constexpr Field<L2NormParams> kFields[] = {
    {"Epsilon", [](const L2NormParams& p) { return absl::StrCat(p.epsilon); }},
    {"Dimension", [](const L2NormParams& p) { return ShowAxes(p.axes); }},
};

void Compute(const L2NormParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::L2Normalize(in[0].dims.extent, MathAxes(p.axes), p.epsilon, in[0].span(), out.span());
}

const UnitKindOf<L2NormParams>& Kind() {
  static const UnitKindOf<L2NormParams>& kind =
      *new UnitKindOf<L2NormParams>({.type = "L2Normalization",
                                     .shape = Shape,
                                     .validate = Validate,
                                     .fields = kFields,
                                     .compute = Compute});
  return kind;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t given_axis, a.Int("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(int64_t p, a.Int("p", 2));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  if (p != 2) return c.NotLowered(absl::StrCat("LpNormalization with p = ", p));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given_axis, rank));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), L2NormParams{{AxisOf(rank, axis)}}, {x}));
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {{.op = "LpNormalization", .lower = Lower}};

}  // namespace

KernelRows L2NormalizationRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
