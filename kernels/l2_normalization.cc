// L2Normalization: x / sqrt(sum of squares over a set of axes). Native on every target. Facts:
// validators.json L2Norm; numerics.json nrm-l2; compiler_texts.json netplist_keys.
#include "kernels/l2_normalization.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/exact_reduce.h"
#include "kernels/attributes.h"
#include "kernels/layer_normalization.h"
#include "kernels/reshape.h"
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
    Key<&L2NormParams::epsilon, AsHalfBits>("Epsilon"),
    Required<&L2NormParams::axes>("Dimension"),
};

void Compute(const L2NormParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::L2Normalize(in[0].dims.extent, MathAxes(p.axes), p.epsilon, in[0].span(), out.span());
}

void Exact(const L2NormParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  math::ExactL2Normalize(unit.numerics, in[0].dims.extent, MathAxes(p.axes), p.epsilon,
                         in[0].span(), out.span());
}

absl::Status WriteMil(MilEmitter& e, const L2NormParams& p, const Unit& unit) {
  const std::vector<int64_t> axes = MilAxes(e, p.axes);
  if (axes.empty()) return absl::UnimplementedError("a normalization over no axes");
  e.Result(e.Emit("l2_norm",
                  {{"x", {e.In(0)}}, {"axes", {e.Ints(axes)}}, {"epsilon", {e.Half(p.epsilon)}}},
                  unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<L2NormParams>& Kind() {
  static const UnitKindOf<L2NormParams>& kind =
      *new UnitKindOf<L2NormParams>({.type = "L2Normalization",
                                     .shape = Shape,
                                     .validate = Validate,
                                     .fields = kFields,
                                     .mil = WriteMil,
                                     .compute = Compute,
                                     .exact = Exact});
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

// Over the last three axes, or those that are named.
absl::Status Build(MilContext& c) {
  L2NormParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.epsilon, c.Number("epsilon", 1e-6f));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Ints("axes", {-3, -2, -1}));
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  // Rank 3 has no batch to keep apart: its axes are C, H and W.
  std::vector<int64_t> shape = c.ShapeOf(0);
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  const int rank = static_cast<int>(shape.size());
  for (int64_t at : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, c.rank(0)));
    p.axes.push_back(AxisOf(rank, rank - c.rank(0) + axis));
  }
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, PlaceShape(shape)));
  ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), p, {x}));
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, PlaceShape(c.ShapeOf(0))));
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"l2_norm", Build}};

constexpr Lowering kLowerings[] = {{.op = "LpNormalization", .lower = Lower}};

}  // namespace

absl::StatusOr<Operand> L2Normalized(NetworkBuilder& c, const Operand& x, std::vector<Axis> axes,
                                     float epsilon) {
  return c.Add(Kind(), L2NormParams{std::move(axes), epsilon}, {x});
}

KernelRows L2NormalizationRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
