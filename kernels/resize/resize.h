// kernels/resize/resize.h: the Resize unit, and the positions that it samples; for lowerings.
#ifndef ANEMONE_KERNELS_RESIZE_RESIZE_H_
#define ANEMONE_KERNELS_RESIZE_RESIZE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/lowering.h"
#include "kernels/resize/sampling.h"
#include "math/move/resize.h"
#include "numerics.h"  // generated

namespace anemone {

// The input position of output i is known for three grids (`in` and `out` are the extents):
//   kDefault               i * in / out
//   kUnalignedCorners      (i + 0.5) * in / out - 0.5
//   kStrictAlignedCorners  i * (in - 1) / (out - 1), or 0 if there is only one output
// Nearest takes the element at or before that position, linear the two elements around it.
// This table has MIL's names of the grids; MIL has no name for the other ones.
inline constexpr std::pair<const char*, SamplingGridMode> kMilGrids[] = {
    {"DEFAULT", SamplingGridMode::kDefault},
    {"ALIGN_CORNERS", SamplingGridMode::kAlignedCorners},
    {"STRICT_ALIGN_CORNERS", SamplingGridMode::kStrictAlignedCorners},
    {"UNALIGN_CORNERS", SamplingGridMode::kUnalignedCorners},
    {"OFFSET_CORNERS", SamplingGridMode::kOffsetCorners},
};

bool IsKnownGrid(SamplingGridMode grid);

struct ResizeParams {
  SamplingMethod method = SamplingMethod::kNearestNeighbor;
  SamplingGridMode grid = SamplingGridMode::kDefault;
  int64_t h = 0, w = 0;            // extents of the output; 0 until they are known
  float scale_h = 0, scale_w = 0;  // factors that a netplist may give instead of h and w; else 0
  bool has_both = false;           // the netplist gives both extents and factors
  bool other_axes = false;         // the netplist also samples an axis other than H and W
};

const UnitKindOf<ResizeParams>& ResizeUnit();

// floor(extent * factor); kInvalidArgument if that is not in 1..kTableBound
// (kernels/shared/bounds.h).
absl::StatusOr<int64_t> Enlarged(int64_t extent, float factor);

// For each output element, its position in the input, in [0, in - 1].
using Positions = std::vector<double>;

Positions OnGrid(SamplingGridMode grid, int64_t in, int64_t out);
std::vector<int32_t> Floors(const Positions& at);
math::AxisTaps TapsOf(const Positions& at, int64_t in);

// math::ResizeLinear() with two taps, in exact mode: the option ew-texture (numerics.json) decides
// whether the weights are rounded to fp16. Products and sums are wide, and the result is rounded
// once.
void InterpolateExactly(const math::Numerics& n, const math::ResizeShape& shape,
                        const math::AxisTaps& rows, const math::AxisTaps& columns,
                        absl::Span<const math::Half> x, absl::Span<math::Half> y);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_RESIZE_H_
