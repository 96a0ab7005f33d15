// kernels/units/gather.h: elements at places of a plane or an axis, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_GATHER_H_
#define ANEMONE_KERNELS_UNITS_GATHER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/lowering.h"

namespace anemone {

inline constexpr int64_t kCoordinates = 3;     // depth, height and width
inline constexpr int64_t kMostPlaces = 65536;  // on an axis: indices are uint16

// A possibly negative index made 0..extent-1; kInvalidArgument outside.
absl::StatusOr<int64_t> NormalIndex(int64_t index, int64_t extent);

// Points as the unit's second bottom, 1 x 3 x count x 1.
struct PointList {
  Operand operand;
  int64_t count = 1;
};

// Constant points (depth, row, column); depths and rows that are left out are 0.
PointList FixedPoints(NetworkBuilder& c, absl::Span<const int64_t> rows,
                      absl::Span<const int64_t> columns, absl::Span<const int64_t> depths = {});

// A Gather unit: what of `x`, 1 x C x D x H x W, is at the points, for each channel.
Operand AtPoints(NetworkBuilder& c, const Operand& x, const PointList& points);

// The elements of `x`, 1 x C x H x W, at `places` (row * W + column) of each of its planes:
// 1 x C x 1 x places. kUnimplemented if a place or an axis is past a uint16.
Operand PickedElements(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> places);

// The elements along ONNX axis `axis` of `x`, a value of shape `from`, whose indices are the
// points' columns. kUnimplemented if the axis is past a uint16.
Operand Gathered(NetworkBuilder& c, absl::Span<const int64_t> from, int axis, Operand x,
                 const PointList& points);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_GATHER_H_
