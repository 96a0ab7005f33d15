// kernels/resize/resize.h: the Resize unit, and where it samples; for lowerings.
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

namespace anemone {

// Where output i of `out` lies among the `in` elements of the input is known of three grids:
//   kDefault               i * in / out
//   kUnalignedCorners      (i + 0.5) * in / out - 0.5
//   kStrictAlignedCorners  i * (in - 1) / (out - 1), the first element if there is one output
// Nearest takes the element at or before it, linear the two around it.
// The grids in MIL's words; it has none for the others.
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
  int64_t h = 0, w = 0;            // of the output; 0 until they are known
  float scale_h = 0, scale_w = 0;  // instead, in a set of keys; else 0
  bool has_both = false;           // sizes and factors
  bool other_axes = false;         // a set of keys samples another axis too
};

const UnitKindOf<ResizeParams>& ResizeUnit();

// Past the cap of every target; keeps tables small that are made before a target is asked.
inline constexpr int64_t kMostResized = 1 << 20;

// The extent that a factor gives; kInvalidArgument if it is out of bounds.
absl::StatusOr<int64_t> Enlarged(int64_t extent, float factor);

// Positions in the input, by output element, inside [0, in - 1].
using Positions = std::vector<double>;

Positions OnGrid(SamplingGridMode grid, int64_t in, int64_t out);
std::vector<int32_t> Floors(const Positions& at);
math::AxisTaps TapsOf(const Positions& at, int64_t in);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_RESIZE_RESIZE_H_
