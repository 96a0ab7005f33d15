#include "math/reduce/points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "math/core/parallel.h"

namespace anemone::math {
namespace {

struct Points {
  explicit Points(absl::Span<const Half> cloud) : count(static_cast<int64_t>(cloud.size()) / 3) {
    at.reserve(cloud.size());
    for (Half h : cloud) at.push_back(ToDouble(h));
  }
  int64_t count;
  std::vector<double> at;  // x of all points, then y, then z
};

double Apart(double a, double b) { return a == b ? 0 : a - b; }  // 0 for two equal infinities

double SquaredDistance(const Points& a, int64_t i, const Points& b, int64_t j) {
  const double x = Apart(a.at[i], b.at[j]);
  const double y = Apart(a.at[a.count + i], b.at[b.count + j]);
  const double z = Apart(a.at[2 * a.count + i], b.at[2 * b.count + j]);
  return x * x + y * y + z * z;
}

}  // namespace

void FurthestPoints(absl::Span<const Half> cloud, absl::Span<int32_t> chosen) {
  const Points points(cloud);
  // For each point, the squared distance to the nearest chosen point.
  std::vector<double> nearest(points.count, std::numeric_limits<double>::infinity());
  int64_t next = 0;
  for (int32_t& index : chosen) {
    const int64_t latest = next;
    index = static_cast<int32_t>(latest);
    double furthest = -1;
    for (int64_t i = 0; i < points.count; ++i) {
      nearest[i] = std::min(nearest[i], SquaredDistance(points, i, points, latest));
      if (nearest[i] <= furthest) continue;
      furthest = nearest[i];
      next = i;
    }
  }
}

void WithinRadius(absl::Span<const Half> cloud, absl::Span<const Half> centroids, float radius,
                  Half member, absl::Span<Half> out) {
  const Points points(cloud), centres(centroids);
  ParallelForItems(points.count, centres.count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < centres.count; ++j) {
        const double distance = std::sqrt(SquaredDistance(points, i, centres, j));
        out[i * centres.count + j] = distance <= radius ? member : kHalfZero;
      }
    }
  });
}

}  // namespace anemone::math
