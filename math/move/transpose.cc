#include "math/move/transpose.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/move/copy.h"
#include "math/move/copy_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/move/transpose.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns.
void TransposeDirectly(const Half* from, int64_t from_step, int64_t rows, Half* to, int64_t to_step,
                       int64_t columns) {
  TransposeTile([&](int64_t i) HWY_ATTR { return from + i * from_step; }, rows, columns, to,
                to_step);
}

// The same for rows at from + row_offsets[i] and runs at to + column_offsets[j], each of which is
// written at once. `turned` has space for the tile.
void TransposeStaged(const Half* from, const int64_t* row_offsets, int64_t rows, Half* to,
                     const int64_t* column_offsets, int64_t columns, Half* turned) {
  TransposeTile([&](int64_t i) HWY_ATTR { return from + row_offsets[i]; }, rows, columns, turned,
                rows);
  const hn::ScalableTag<uint16_t> d;
  const int64_t lanes = hn::Lanes(d);
  for (int64_t j = 0; j < columns; ++j) {
    const Half* source = turned + j * rows;
    Half* target = to + column_offsets[j];
    int64_t i = 0;
    for (; i + lanes <= rows; i += lanes) {
      hn::StoreU(hn::LoadU(d, reinterpret_cast<const uint16_t*>(source + i)), d,
                 reinterpret_cast<uint16_t*>(target + i));
    }
    CopyBytes(source + i, target + i, (rows - i) * static_cast<int64_t>(sizeof(Half)));
  }
}

// A plane whose rows are next to each other in the result.
void InterleaveRows(const Half* from, int64_t step, int64_t rows, int64_t columns, Half* to) {
  InterleaveRuns(from, step, rows, columns, to);
}

// A plane whose rows are next to each other in the input.
void SeparateColumns(const Half* from, int64_t columns, int64_t rows, Half* to, int64_t step) {
  SeparateRuns(from, columns, rows, to, step);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(InterleaveRows);
HWY_EXPORT(SeparateColumns);
HWY_EXPORT(TransposeDirectly);
HWY_EXPORT(TransposeStaged);

namespace {

struct MovedAxis {
  int64_t extent, in_stride, out_stride;
};

using MovedAxes = absl::InlinedVector<MovedAxis, kRank>;

// The axes in output order, without axes of extent 1. Neighboring axes that stay together are
// merged.
MovedAxes MergeAxes(const Extents& in_extents, const std::array<int, kRank>& permutation) {
  const Strides in_strides = DenseStrides(in_extents);
  const Strides out_strides = DenseStrides(Permuted(in_extents, permutation));
  MovedAxes axes;
  for (int i = 0; i < kRank; ++i) {
    const MovedAxis axis{in_extents[permutation[i]], in_strides[permutation[i]], out_strides[i]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().in_stride == axis.in_stride * axis.extent) {
      axes.back() = {axes.back().extent * axis.extent, axis.in_stride, axis.out_stride};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

// Axes that are walked together, outermost first, each with its step.
struct Walk {
  absl::InlinedVector<std::pair<int64_t, int64_t>, kRank> axes;  // extent, step
  int64_t count = 1;

  // Whether neighbors are always `step` apart.
  bool Steps(int64_t step) const { return axes.size() == 1 && axes[0].second == step; }
  void AddOuter(int64_t extent, int64_t step) {
    axes.insert(axes.begin(), {extent, step});
    count *= extent;
  }
  int64_t Offset(int64_t element) const {
    int64_t at = 0;
    for (size_t i = axes.size(); i-- > 0; element /= axes[i].first) {
      at += element % axes[i].first * axes[i].second;
    }
    return at;
  }
  // The offsets of `number` elements from `first` on.
  void Offsets(int64_t first, int64_t number, int64_t* offsets) const {
    std::array<int64_t, kRank> index{};
    int64_t at = 0;
    for (size_t i = axes.size(); i-- > 0; first /= axes[i].first) {
      index[i] = first % axes[i].first;
      at += index[i] * axes[i].second;
    }
    const auto [extent, step] = axes.back();
    for (int64_t k = 0; k < number;) {
      const int64_t run = std::min(extent - index[axes.size() - 1], number - k);
      for (int64_t i = 0; i < run; ++i) offsets[k + i] = at + i * step;
      k += run;
      int64_t steps = run;
      for (size_t i = axes.size(); i-- > 0; steps = 1) {
        index[i] += steps;
        at += steps * axes[i].second;
        if (index[i] < axes[i].first) break;
        at -= axes[i].first * axes[i].second;
        index[i] = 0;
      }
    }
  }
};

// A transpose as planes: rows are contiguous in the output, columns in the input.
struct Planes {
  Walk rows;     // with the steps of the input
  Walk columns;  // with the steps of the output
  Walk in, out;  // the planes
};

constexpr int64_t kTile = 64;
constexpr int64_t kNarrow = 8;  // columns that one block of registers has

// Rows get the innermost axes of the output and columns those of the input, until both fill a tile
// or meet.
Planes FindPlanes(MovedAxes axes) {
  Planes planes;
  const auto take_row = [&](MovedAxes::iterator axis) {
    planes.rows.AddOuter(axis->extent, axis->in_stride);
    axes.erase(axis);
  };
  const auto take_column = [&](MovedAxes::iterator axis) {
    planes.columns.AddOuter(axis->extent, axis->out_stride);
    axes.erase(axis);
  };
  const auto by_in_stride = [](int64_t stride) {
    return [stride](const MovedAxis& axis) { return axis.in_stride == stride; };
  };
  take_row(axes.end() - 1);
  take_column(std::find_if(axes.begin(), axes.end(), by_in_stride(1)));
  for (bool grew = true; grew;) {
    grew = false;
    if (planes.rows.count < kTile && !axes.empty() && axes.back().out_stride == planes.rows.count) {
      take_row(axes.end() - 1);
      grew = true;
    }
    const auto next = std::find_if(axes.begin(), axes.end(), by_in_stride(planes.columns.count));
    if (planes.columns.count < kTile && next != axes.end()) {
      take_column(next);
      grew = true;
    }
  }
  for (size_t i = axes.size(); i-- > 0;) {
    planes.in.AddOuter(axes[i].extent, axes[i].in_stride);
    planes.out.AddOuter(axes[i].extent, axes[i].out_stride);
  }
  return planes;
}

// A tile has about kTile * kTile elements, also if the plane is narrow.
int64_t TileOf(int64_t extent, int64_t other) {
  return std::min(extent, kTile * std::max<int64_t>(kTile / other, 1));
}

}  // namespace

void Transpose(const Extents& in_extents, const std::array<int, kRank>& permutation,
               absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size() && static_cast<int64_t>(in.size()) == Count(in_extents));
  const MovedAxes axes = MergeAxes(in_extents, permutation);
  // If the innermost axis of the input stays innermost, the data is copied in rows.
  if (axes.size() < 2 || axes.back().in_stride == 1) {
    Strides strides;
    const Strides in_strides = DenseStrides(in_extents);
    for (int i = 0; i < kRank; ++i) strides[i] = in_strides[permutation[i]];
    const Extents out_extents = Permuted(in_extents, permutation);
    return CopyBlock(out_extents, in.data(), strides, out.data(), DenseStrides(out_extents));
  }
  const Planes planes = FindPlanes(axes);
  const Walk &rows = planes.rows, &columns = planes.columns;
  // Lines a power of two apart compete for a few places of the first-level cache.
  constexpr int64_t kCompeting = 512;
  const bool direct = rows.axes.size() == 1 && rows.count >= kTile && columns.axes.size() == 1 &&
                      columns.count >= kTile && columns.axes[0].second % kCompeting != 0;
  const int64_t tile_rows =
      direct ? std::min(rows.count, 4 * kTile) : TileOf(rows.count, columns.count);
  const int64_t tile_columns = direct ? kTile / 2 : TileOf(columns.count, rows.count);
  const int64_t row_tiles = (rows.count + tile_rows - 1) / tile_rows;
  const int64_t column_tiles = (columns.count + tile_columns - 1) / tile_columns;
  const int64_t tiles = row_tiles * column_tiles;
  const bool interleaves = !direct && columns.Steps(rows.count) && rows.axes.size() == 1;
  const bool separates =
      rows.Steps(columns.count) && columns.axes.size() == 1 && columns.count <= kNarrow;
  ParallelForItems(
      planes.in.count * tiles, tile_rows * tile_columns, [&](int64_t begin, int64_t end) {
        int64_t* const row_offsets =
            ThreadScratch<int64_t>(ScratchUse::kPieces, tile_rows + tile_columns);
        int64_t* const column_offsets = row_offsets + tile_rows;
        Half* const turned = ThreadScratch<Half>(ScratchUse::kTile, tile_rows * tile_columns);
        for (int64_t item = begin; item < end; ++item) {
          const int64_t from = planes.in.Offset(item / tiles);
          const int64_t to = planes.out.Offset(item / tiles);
          const int64_t row = item % tiles / column_tiles * tile_rows;
          const int64_t column = item % column_tiles * tile_columns;
          const int64_t height = std::min(tile_rows, rows.count - row);
          const int64_t width = std::min(tile_columns, columns.count - column);
          const Half* const source = in.data() + from + column;
          Half* const target = out.data() + to + row;
          if (interleaves && row_tiles == 1) {
            HWY_DYNAMIC_DISPATCH(InterleaveRows)
            (source, rows.axes[0].second, height, width, target + column * height);
            continue;
          }
          if (separates && column_tiles == 1) {
            HWY_DYNAMIC_DISPATCH(SeparateColumns)
            (source + row * width, width, height, target, columns.axes[0].second);
            continue;
          }
          if (direct) {
            const int64_t from_step = rows.axes[0].second, to_step = columns.axes[0].second;
            HWY_DYNAMIC_DISPATCH(TransposeDirectly)
            (source + row * from_step, from_step, height, target + column * to_step, to_step,
             width);
            continue;
          }
          rows.Offsets(row, height, row_offsets);
          columns.Offsets(column, width, column_offsets);
          HWY_DYNAMIC_DISPATCH(TransposeStaged)
          (source, row_offsets, height, target, column_offsets, width, turned);
        }
      });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
