// DynamicGOC: x * scale + bias or x + bias, with scale and bias computed at run time. Facts:
// validators.json DynamicGOC; hidden_layers.json additional_units.
#include <algorithm>

#include "kernels/lowering.h"
#include "math/elementwise/elementwise.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_elementwise.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct DynamicGocParams {
  bool bias_only = false;
};

absl::StatusOr<Dims> Shape(const DynamicGocParams& p, Bottoms in) {
  if (in.size() != (p.bias_only ? 2 : 3)) {
    return absl::InvalidArgumentError(
        "want inputs x and bias with BiasOnly, otherwise x, scale and bias");
  }
  for (const Bottom& bottom : in) {
    for (int i = 0; i < kAxisCount; ++i) {
      int64_t extent = bottom.dims.extent[i];
      if (extent != 1 && extent != in[0].dims.extent[i]) {
        return absl::InvalidArgumentError(
            "scale and bias: want the extent of x or 1 along each axis");
      }
    }
  }
  return in[0].dims;
}

Verdict Validate(const DynamicGocParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return judge.Has(Cap::kDynamicGoc) ? judge.Accept() : judge.Reject(rule::kDynamicGocArch);
}

// The index in an operand, which is broadcast to `dims`, of the value for element `i` of `dims`.
int64_t PlaceIn(const Dims& operand, const Dims& dims, int64_t i) {
  int64_t place = 0, stride = 1;
  for (int axis = kAxisCount - 1; axis >= 0; --axis) {
    const int64_t extent = dims.extent[axis];
    if (operand.extent[axis] > 1) place += i % extent * stride;
    stride *= operand.extent[axis];
    i /= extent;
  }
  return place;
}

// One rounding, as in GOC: the same gain and offset give the same bits. Gain and offset are
// broadcast along their axes of extent 1.
void Compute(const DynamicGocParams& p, const void*, absl::Span<const ConstView> in, View out) {
  if (p.bias_only) {
    return math::Binary(math::BinaryOp::kAdd, in[0].span(), in[0].dims.extent, in[1].span(),
                        in[1].dims.extent, out.span(), out.dims.extent);
  }
  // The elements of the last axes, along which neither scale nor bias changes.
  int64_t run = 1;
  for (int axis = kAxisCount - 1; axis >= 0; --axis) {
    if (std::max(in[1].dims.extent[axis], in[2].dims.extent[axis]) > 1) break;
    run *= out.dims.extent[axis];
  }
  for (int64_t i = 0; i < out.dims.elements(); i += run) {
    const float scale = math::ToFloat(in[1].data[PlaceIn(in[1].dims, out.dims, i)]);
    const float bias = math::ToFloat(in[2].data[PlaceIn(in[2].dims, out.dims, i)]);
    math::Affine(in[0].span().subspan(i, run), scale, bias, out.span().subspan(i, run));
  }
}

void Exact(const DynamicGocParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  const math::Extents& to = out.dims.extent;
  absl::Span<const math::Half> x = in[0].span();
  std::vector<math::Half> product;
  if (!p.bias_only) {
    product.resize(x.size());
    math::ExactBinary(unit.numerics, math::BinaryOp::kMul, x, to, in[1].span(), in[1].dims.extent,
                      absl::MakeSpan(product), to);
    x = product;
  }
  const ConstView& offset = in[p.bias_only ? 1 : 2];
  math::ExactBinary(unit.numerics, math::BinaryOp::kAdd, x, to, offset.span(), offset.dims.extent,
                    out.span(), to);
}

bool IsBiasOnly(const DynamicGocParams& p) { return p.bias_only; }

constexpr Field<DynamicGocParams> kFields[] = {
    Key<&DynamicGocParams::bias_only, Plain, IsBiasOnly>("BiasOnly")};

const UnitKindOf<DynamicGocParams>& Kind() {
  static const UnitKindOf<DynamicGocParams> kind({
      .type = "DynamicGOC",
      .bottoms = {2, 3},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

}  // namespace

KernelRows DynamicGocRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
