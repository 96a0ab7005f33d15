// math/reduce/points.h: farthest point sampling and radius search for 3-D point clouds.
//
//   std::vector<int32_t> chosen(1024);
//   FurthestPoints(cloud, absl::MakeSpan(chosen));             // cloud: 3 x points
//   WithinRadius(cloud, centroids, 0.5f, kHalfOne, member);    // member: points x centroids
//
// A cloud holds the x coordinates of all points, then all y, then all z. Distances are Euclidean
// and computed in double. Differences of Halfs are exact, and a distance has a relative error of
// 2^-52, far below the spacing of Halfs. Two infinite coordinates of the same sign have difference
// 0, because the engine has no NaN (numerics_notes.md section 1).
#ifndef ANEMONE_MATH_REDUCE_POINTS_H_
#define ANEMONE_MATH_REDUCE_POINTS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/half.h"

namespace anemone::math {

// Chooses point 0, then repeatedly the point with the largest distance to its nearest chosen point;
// among equals, the first. Once all points are chosen, this is point 0.
void FurthestPoints(absl::Span<const Half> cloud, absl::Span<int32_t> chosen);

// out[i * centroids + j] = `member` if the distance of point i and centroid j is at most `radius`,
// else 0.
void WithinRadius(absl::Span<const Half> cloud, absl::Span<const Half> centroids, float radius,
                  Half member, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_POINTS_H_
