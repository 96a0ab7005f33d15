// RadiusSearch: which points lie within a radius of which centroids; a row per point, a column per
// centroid. Direct authoring only. Facts: validators.json RadiusSearch; hidden_layers.json
// RadiusSearch.
#include "kernels/lowering.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct RadiusSearchParams {
  float radius = 0;
};

absl::StatusOr<Dims> Shape(const RadiusSearchParams&, Bottoms in) {
  const Dims &centroids = in[0].dims, &points = in[1].dims;
  if (centroids.n() != points.n()) {
    return absl::InvalidArgumentError("want as many clouds of centroids as of points");
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

const UnitKindOf<RadiusSearchParams>& Kind() {
  static const UnitKindOf<RadiusSearchParams>& kind =
      *new UnitKindOf<RadiusSearchParams>({.type = "RadiusSearch",
                                           .min_family = kFamilyA13,
                                           .bottoms = {2, 2},
                                           .shape = Shape,
                                           .validate = Validate,
                                           .fields = kFields});
  return kind;
}

}  // namespace

KernelRows RadiusSearchRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
