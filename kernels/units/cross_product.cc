// CrossProduct: x cross z, for vectors of three channels. Direct authoring only. Facts:
// validators.json CrossProduct; hidden_layers.json CrossProduct. The validator requires an
// interleave of 1, which is the only one that Anemone uses.
#include <cmath>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/units/reshape.h"
#include "math/exact/exact_half.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct CrossProductParams {};

absl::StatusOr<Dims> Shape(const CrossProductParams&, Bottoms in) {
  if (in[0].dims != in[1].dims) return absl::InvalidArgumentError("want two vectors of one shape");
  return in[0].dims;
}

Verdict Validate(const CrossProductParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  for (const Bottom& bottom : in) {
    if (bottom.dims != MakeDims(bottom.dims.n(), 3, 1, 1)) {
      return judge.Reject(rule::kCrossProductShape);
    }
    if (bottom.format != Format::kFloat16) return judge.Reject(rule::kCrossProductFormat);
  }
  return judge.Accept();
}

// The products are exact in fp32. Their difference is rounded to fp32 and then once to fp16
// (numerics.json ew-hidden, wide).
void Compute(const CrossProductParams&, const void*, absl::Span<const ConstView> in, View out) {
  for (int64_t n = 0; n < out.dims.n(); ++n) {
    float x[3], z[3];
    for (int i = 0; i < 3; ++i) {
      x[i] = math::ToFloat(in[0].data[3 * n + i]);
      z[i] = math::ToFloat(in[1].data[3 * n + i]);
    }
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      out.data[3 * n + i] = math::ToHalf(x[j] * z[k] - x[k] * z[j]);
    }
  }
}

// Rounds the products and the difference (`steps`), or only the difference.
void Exact(const CrossProductParams&, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const math::Numerics& n = unit.numerics;
  for (int64_t i = 0; i < out.dims.elements(); ++i) {
    const int64_t vector = i / 3 * 3, j = vector + (i + 1) % 3, k = vector + (i + 2) % 3;
    const auto product = [&](int64_t x, int64_t z) {
      const double exact = math::ToDouble(in[0].data[x]) * math::ToDouble(in[1].data[z]);
      return n.ew_hidden == math::EwHidden::kSteps || std::isnan(exact) ? math::Rounded(exact, n)
                                                                        : exact;
    };
    out.data[i] = math::Stored(product(j, k) - product(k, j), n);
  }
}

const UnitKindOf<CrossProductParams>& Kind() {
  static const UnitKindOf<CrossProductParams> kind({
      .type = "CrossProduct",
      .family = &rule::kUnitFamily,
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

// A value of three elements, whatever its shape, becomes a vector of three channels. The validator
// refuses other sizes.
Operand Vector(MilContext& c, size_t i) {
  Operand x = c.In(i);
  if (ElementCount(c.ShapeOf(i)).value_or(0) != 3) return x;
  return ReshapeToDims(c, x, MakeDims(1, 3, 1, 1));
}

absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kNotInFrontend));
  Operand x = Vector(c, 0);
  Operand z = Vector(c, 1);
  Operand y = c.Add(Kind(), {}, {x, z});
  y = ReshapeToDims(c, y, PlaceShape(c.ShapeOf(0)));
  return c.Out(y, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"cross_product", Build}};

}  // namespace

KernelRows CrossProductRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
