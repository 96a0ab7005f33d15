// FurthestPointSampling: picks the points of a 3-D point cloud that are furthest apart, beginning
// with the first point. Direct authoring only. Facts: validators.json FurthestPointSampling;
// hidden_layers.json FurthestPointSampling; netplist.md for the least count.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/lowering.h"
#include "math/reduce/points.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class Distance : uint8_t { kL2, kL1 };

absl::Span<const char* const> NamesOf(Distance) {
  static constexpr const char* kNames[] = {"L2", "L1"};
  return kNames;
}

struct FurthestPointSamplingParams {
  int64_t count = 2;
  Distance distance = Distance::kL2;
};

absl::StatusOr<Dims> Shape(const FurthestPointSamplingParams& p, Bottoms in) {
  const Dims& points = in[0].dims;
  if (points != MakeDims(points.n(), 3, 1, points.w())) {
    return absl::InvalidArgumentError("want points of three channels along Width");
  }
  if (p.count < 2) return absl::InvalidArgumentError("CentroidCount: want 2 or more");
  return MakeDims(points.n(), 3, 1, p.count);
}

Verdict Validate(const FurthestPointSamplingParams& p, Bottoms in, const Target& target,
                 Route route) {
  Judge judge(target, route);
  if (in[0].dims.w() > rule::kFurthestPointSamplingPoints.limit) {
    return judge.Reject(rule::kFurthestPointSamplingPoints);
  }
  if (p.count > rule::kFurthestPointSamplingCentroids.limit) {
    return judge.Reject(rule::kFurthestPointSamplingCentroids);
  }
  if (p.distance != Distance::kL2) return judge.Reject(rule::kFurthestPointSamplingDistance);
  return judge.Accept();
}

constexpr Field<FurthestPointSamplingParams> kFields[] = {
    Required<&FurthestPointSamplingParams::count>("CentroidCount"),
    Required<&FurthestPointSamplingParams::distance>("DistanceMetric"),
};

// Copies the chosen points without rounding. Among points at equal distance the first is taken,
// because the tables have no rule.
void Compute(const FurthestPointSamplingParams& p, const void*, absl::Span<const ConstView> in,
             View out) {
  const int64_t points = in[0].dims.w();
  std::vector<int32_t> chosen(p.count);
  for (int64_t n = 0; n < in[0].dims.n(); ++n) {
    const math::Half* cloud = in[0].data + n * 3 * points;
    math::FurthestPoints({cloud, static_cast<size_t>(3 * points)}, absl::MakeSpan(chosen));
    for (int64_t axis = 0; axis < 3; ++axis) {
      std::transform(chosen.begin(), chosen.end(), out.data + (n * 3 + axis) * p.count,
                     [&](int32_t i) { return cloud[axis * points + i]; });
    }
  }
}

const UnitKindOf<FurthestPointSamplingParams>& Kind() {
  static const UnitKindOf<FurthestPointSamplingParams> kind({
      .type = "FurthestPointSampling",
      .family = &rule::kUnitFamily,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.compute = Compute},
  });
  return kind;
}

}  // namespace

KernelRows FurthestPointSamplingRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
