#include "anemone/scale_grid.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "anemone/tensor.h"

namespace anemone {

absl::StatusOr<ScaleGrid> ScaleGrid::Of(absl::Span<const int64_t> dims,
                                        absl::Span<const int64_t> scales, int64_t axis,
                                        int64_t block_size) {
  const auto product = [&](size_t from, size_t to) {
    return std::accumulate(dims.begin() + from, dims.begin() + to, int64_t{1},
                           std::multiplies<int64_t>());
  };
  const bool one = scales.empty() || (scales.size() == 1 && scales[0] == 1);
  if (one && block_size == 0) return OfTensor(product(0, dims.size()));
  const auto rank = static_cast<int64_t>(dims.size());
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is out of range for shape ", DimsToString(dims)));
  }
  if (axis < 0) axis += rank;
  ScaleGrid grid;
  grid.axis = dims[axis];
  grid.inner = product(axis + 1, dims.size());
  grid.axis_stride = 1;
  const auto misfit = [&](absl::string_view want) {
    return absl::InvalidArgumentError(absl::StrCat("scales of shape ", DimsToString(scales),
                                                   " for a tensor of ", DimsToString(dims),
                                                   ": want ", want));
  };
  if (block_size == 0) {
    if (scales.size() != 1 || scales[0] != grid.axis) {
      return misfit(absl::StrCat("one, or ", grid.axis, " for axis ", axis));
    }
    return grid;
  }
  std::vector<int64_t> want(dims.begin(), dims.end());
  if (block_size < 0 || block_size > grid.axis) {
    return misfit(absl::StrCat("a block_size from 1 to ", grid.axis));
  }
  want[axis] = (grid.axis + block_size - 1) / block_size;
  if (!std::equal(want.begin(), want.end(), scales.begin(), scales.end())) {
    return misfit(absl::StrCat(DimsToString(want), " for blocks of ", block_size));
  }
  grid.block = block_size;
  grid.axis_stride = grid.inner;
  grid.outer_stride = product(0, axis) > 1 ? want[axis] * grid.inner : 0;
  grid.inner_stride = grid.inner > 1 ? 1 : 0;
  return grid;
}

bool ScaleGrid::Fits(int64_t elements, int64_t scales) const {
  if (axis < 1 || inner < 1 || block < 1) return false;
  if (elements == 0) return true;
  const int64_t rows = (elements - 1) / inner;
  int64_t last = 0;  // the largest index
  for (auto [index, stride] : {std::pair(rows / axis, outer_stride),
                               std::pair(std::min(rows, axis - 1) / block, axis_stride),
                               std::pair(std::min(elements, inner) - 1, inner_stride)}) {
    if (stride < 0 || (stride > 0 && index > scales / stride)) return false;
    last += index * stride;
  }
  return last < scales;
}

int64_t ScaleGrid::SharedRun(int64_t step, int64_t count) const {
  int64_t run = count;
  // The index of the scale changes at every multiple of `boundary` elements, and repeats after
  // `period` elements (0: never).
  const auto cut = [&](int64_t boundary, int64_t period) {
    if (step == 1) {
      run = std::gcd(run, boundary);
    } else if (period == 0 || step % period != 0) {
      run = boundary % step == 0 ? std::gcd(run, boundary / step) : 1;
    }
  };
  if (inner_stride != 0) cut(1, inner);
  if (axis_stride != 0) {
    cut(inner * block, inner * axis);
    if (axis % block != 0) cut(inner * axis, 0);
  }
  if (outer_stride != 0) cut(inner * axis, 0);
  return run;
}

}  // namespace anemone
