// math/reduce/points.h: distances between points of space.
//
//   std::vector<int32_t> chosen(1024);
//   FurthestPoints(cloud, absl::MakeSpan(chosen));             // cloud: x of all points, y, z
//   WithinRadius(cloud, centroids, 0.5f, kHalfOne, member);    // a row per point
//
// Distances are Euclidean and computed in double: coordinates are Half, so a difference is exact
// and a distance errs by 2^-52, far below what tells two Halves apart. Two infinite coordinates of
// one sign are 0 apart: the engine has no NaN (numerics_notes.md section 1).
#ifndef ANEMONE_MATH_REDUCE_POINTS_H_
#define ANEMONE_MATH_REDUCE_POINTS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/half.h"

namespace anemone::math {

// Greedy: point 0, then again and again the point whose nearest chosen one is furthest away; of
// several the first. Once all points are chosen that is point 0.
void FurthestPoints(absl::Span<const Half> cloud, absl::Span<int32_t> chosen);

// out[i * centroids + j] = point i is at most `radius` away from centroid j ? member : 0.
void WithinRadius(absl::Span<const Half> cloud, absl::Span<const Half> centroids, float radius,
                  Half member, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_POINTS_H_
