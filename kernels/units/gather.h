// kernels/units/gather.h: for lowerings: picks elements of a tensor by their positions in a plane
// or along an axis.
#ifndef ANEMONE_KERNELS_UNITS_GATHER_H_
#define ANEMONE_KERNELS_UNITS_GATHER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

inline constexpr int64_t kCoordinates = 3;     // depth, height and width
inline constexpr int64_t kMostPlaces = 65536;  // along an axis: indices are uint16

// An index of ONNX, -extent..extent-1, as 0..extent-1. kInvalidArgument if it is out of range.
absl::StatusOr<int64_t> NormalIndex(int64_t index, int64_t extent);

// Points as the unit's second bottom, 1 x 3 x count x 1.
struct PointList {
  Operand operand;
  int64_t count = 1;
};

// Constant points (depth, row, column). Empty `depths` or `rows` mean 0 for every point.
PointList FixedPoints(NetworkBuilder& c, absl::Span<const int64_t> rows,
                      absl::Span<const int64_t> columns, absl::Span<const int64_t> depths = {});

// Points from computed coordinates, 1 x k x count x 1. Missing leading coordinates are 0, except
// that `rows`, if it is not empty, is the coordinate before a single computed one.
PointList ComputedPoints(NetworkBuilder& c, const Operand& coordinates,
                         absl::Span<const float> rows);

// A Gather unit: for each channel of `x`, 1 x C x D x H x W, its elements at the points.
Operand AtPoints(NetworkBuilder& c, const Operand& x, const PointList& points);

// The elements of `x`, 1 x C x H x W, at `places` (row * W + column) of each of its planes:
// 1 x C x 1 x places. Not lowered if a place or an axis exceeds uint16.
Operand PickedElements(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> places);

// Like ONNX's Gather: picks elements of `x`, a value of shape `from`, along ONNX axis `axis`. The
// indices are the columns of the points. Not lowered if the extent of the axis exceeds uint16.
Operand Gathered(NetworkBuilder& c, absl::Span<const int64_t> from, int axis, Operand x,
                 const PointList& points);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_GATHER_H_
