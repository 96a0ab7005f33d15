// RadiusSearch: flags the points within a radius of each centroid, with one row for each point and
// one column for each centroid. Direct authoring only. Facts: validators.json RadiusSearch;
// hidden_layers.json RadiusSearch.
#include "kernels/lowering.h"
#include "math/reduce/points.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct RadiusSearchParams {
  float radius = 0;
};

absl::StatusOr<Dims> Shape(const RadiusSearchParams&, Bottoms in) {
  const Dims &centroids = in[0].dims, &points = in[1].dims;
  if (centroids.n() != points.n()) {
    return absl::InvalidArgumentError("want the same number of clouds of centroids and of points");
  }
  return MakeDims(points.n(), 1, points.w(), centroids.w());
}

Verdict Validate(const RadiusSearchParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  for (const Bottom& bottom : in) {
    if (bottom.dims != MakeDims(bottom.dims.n(), 3, 1, bottom.dims.w())) {
      return judge.Reject(rule::kRadiusSearchShape);
    }
  }
  return judge.Accept();
}

constexpr Field<RadiusSearchParams> kFields[] = {Required<&RadiusSearchParams::radius>("Radius")};

// The flag is the low byte of each two-byte element (netplist.md), so a point inside the radius
// gives the bits 0x0001 and not the number 1. A point at the radius counts as inside: the formula
// of hidden_layers.json has "<=", but the sources do not say whether silicon does the same.
void Compute(const RadiusSearchParams& p, const void*, absl::Span<const ConstView> in, View out) {
  constexpr math::Half kMember{0x0001};
  const size_t centroids = 3 * in[0].dims.w(), points = 3 * in[1].dims.w();
  const size_t cells = out.dims.h() * out.dims.w();
  for (int64_t n = 0; n < out.dims.n(); ++n) {
    math::WithinRadius(in[1].span().subspan(n * points, points),
                       in[0].span().subspan(n * centroids, centroids), p.radius, kMember,
                       out.span().subspan(n * cells, cells));
  }
}

const UnitKindOf<RadiusSearchParams>& Kind() {
  static const UnitKindOf<RadiusSearchParams> kind({
      .type = "RadiusSearch",
      .family = &rule::kUnitFamily,
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
  });
  return kind;
}

}  // namespace

KernelRows RadiusSearchRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
