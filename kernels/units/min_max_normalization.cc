// MinMaxNormalization: (x - min) / (max - min + epsilon) over rows or columns; netplist only.
// Facts: validators.json MinMaxNorm; hidden_layers.json; conflicts.md C-minmax-m1, C-minmax-axis;
// numerics.json nrm-minmax.
#include <vector>

#include "kernels/lowering.h"
#include "kernels/shared/affine.h"
#include "math/exact/exact_half.h"
#include "math/reduce/reduce.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct MinMaxParams {
  std::vector<Axis> axes;
  float epsilon = 0;  // rounded to fp16
};

absl::StatusOr<Dims> Shape(const MinMaxParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const MinMaxParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kMinmaxNorm) || !judge.Reaches(rule::kMinMaxNormArch)) {
    return judge.Reject(rule::kMinMaxNormArch);
  }
  for (Axis axis : p.axes) {
    if (axis == Axis::kN) return judge.Reject(rule::kMinMaxNormBatch);
    if (axis == Axis::kD) return judge.Reject(rule::kMinMaxNormAxis);
    if (axis != Axis::kC) continue;
    // The refusal is published for A13 only.
    if (!judge.Reaches(rule::kMinMaxNormAxis)) return judge.Reject(rule::kMinMaxNormAxis);
    judge.Doubt(rule::kMinMaxNormChannel);
  }
  if (!judge.Reaches(rule::kMinMaxNormA13)) judge.Doubt(rule::kMinMaxNormA13);
  return judge.Accept();
}

// One axis is a string, as in the netplists that were seen to run. The compiler writes an array.
struct OneOrMore {
  static Json Write(const std::vector<Axis>& axes) {
    return axes.size() == 1 ? Plain::Write(axes[0]) : Plain::Write(axes);
  }
  static absl::Status Read(const Json& from, std::vector<Axis>& axes) {
    return Plain::Read(from, axes);
  }
};

constexpr Field<MinMaxParams> kFields[] = {
    Required<&MinMaxParams::axes, OneOrMore>("Dimension"),
    Key<&MinMaxParams::epsilon, AsHalfBits>("Epsilon"),
    Alias<&MinMaxParams::epsilon, AsHalfBits>("Epsilon_fp16_bits"),
};

// Rounds every step by `n`.
math::Half Normalized(const math::Numerics& n, math::Half x, math::Half least, math::Half most,
                      float epsilon) {
  const double above = math::Rounded(math::ToDouble(x) - math::ToDouble(least), n);
  const double span = math::Rounded(math::ToDouble(most) - math::ToDouble(least), n);
  return math::Stored(above / math::Rounded(span + epsilon, n), n);
}

void Normalize(const MinMaxParams& p, const math::Numerics& n, absl::Span<const ConstView> in,
               View out) {
  Dims reduced = in[0].dims;
  for (Axis axis : p.axes) reduced[axis] = 1;
  std::vector<math::Half> least(reduced.elements()), most(least.size());
  const math::Extents& extents = in[0].dims.extent;
  math::Reduce(math::ReduceOp::kMin, extents, MathAxes(p.axes), in[0].span(),
               absl::MakeSpan(least));
  math::Reduce(math::ReduceOp::kMax, extents, MathAxes(p.axes), in[0].span(), absl::MakeSpan(most));
  const math::Strides strides = math::DenseStrides(reduced.extent);
  math::Extents at = {};
  for (int64_t i = 0; i < out.dims.elements(); ++i) {
    int64_t from = 0;
    for (int axis = 0; axis < kAxisCount; ++axis) {
      if (reduced.extent[axis] > 1) from += at[axis] * strides[axis];
    }
    out.data[i] = Normalized(n, in[0].data[i], least[from], most[from], p.epsilon);
    for (int axis = kAxisCount - 1; axis >= 0 && ++at[axis] == extents[axis]; --axis) at[axis] = 0;
  }
}

// Rounds as on the oldest family. There is no NaN: 0 / 0 gives 0.
void Compute(const MinMaxParams& p, const void*, absl::Span<const ConstView> in, View out) {
  Normalize(p, math::NumericsOf("A13"), in, out);
}

void Exact(const MinMaxParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  Normalize(p, unit.numerics, in, out);
}

const UnitKindOf<MinMaxParams>& Kind() {
  static const UnitKindOf<MinMaxParams> kind({
      .type = "MinMaxNormalization",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

}  // namespace

KernelRows MinMaxNormalizationRows() { return {{&Kind()}, {}}; }

}  // namespace anemone
