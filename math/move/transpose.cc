#include "math/move/transpose.h"

#include <algorithm>
#include <cassert>

#include "absl/container/inlined_vector.h"
#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/move/copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/move/transpose.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
// Transposes an 8 x 8 block by three rounds of interleaving pairs of rows.
HWY_INLINE void TransposeEight(const uint16_t* from, int64_t from_step, uint16_t* to,
                               int64_t to_step) {
  const hn::Full128<uint16_t> d16;
  const hn::Full128<uint32_t> d32;
  const hn::Full128<uint64_t> d64;
  hn::Vec<decltype(d16)> in[8];
  hn::Vec<decltype(d32)> pairs[8];
  hn::Vec<decltype(d64)> quads[8];
  HWY_UNROLL(8)
  for (int i = 0; i < 8; ++i) in[i] = hn::LoadU(d16, from + i * from_step);
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = hn::BitCast(d32, hn::InterleaveLower(d16, in[2 * i], in[2 * i + 1]));
    pairs[2 * i + 1] = hn::BitCast(d32, hn::InterleaveUpper(d16, in[2 * i], in[2 * i + 1]));
  }
  HWY_UNROLL(2)
  for (int half = 0; half < 2; ++half) {
    HWY_UNROLL(2)
    for (int i = 0; i < 2; ++i) {
      const auto a = pairs[4 * half + i], b = pairs[4 * half + 2 + i];
      quads[4 * half + 2 * i] = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
      quads[4 * half + 2 * i + 1] = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    hn::StoreU(hn::BitCast(d16, hn::InterleaveLower(d64, quads[i], quads[i + 4])), d16,
               to + (2 * i) * to_step);
    hn::StoreU(hn::BitCast(d16, hn::InterleaveUpper(d64, quads[i], quads[i + 4])), d16,
               to + (2 * i + 1) * to_step);
  }
}
#endif

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns.
void TransposePlane(const Half* from, int64_t from_step, Half* to, int64_t to_step, int64_t rows,
                    int64_t columns) {
  int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  whole_rows = rows / 8 * 8;
  whole_columns = columns / 8 * 8;
  // Works on strips of columns, so that the cache lines being written stay in the first-level
  // cache.
  constexpr int64_t kStrip = 32;
  for (int64_t strip = 0; strip < whole_columns; strip += kStrip) {
    const int64_t end = HWY_MIN(strip + kStrip, whole_columns);
    for (int64_t i = 0; i < whole_rows; i += 8) {
      for (int64_t j = strip; j < end; j += 8) {
        TransposeEight(reinterpret_cast<const uint16_t*>(from + i * from_step + j), from_step,
                       reinterpret_cast<uint16_t*>(to + j * to_step + i), to_step);
      }
    }
  }
#endif
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
      to[j * to_step + i] = from[i * from_step + j];
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(TransposePlane);

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

}  // namespace

void Transpose(const Extents& in_extents, const std::array<int, kRank>& permutation,
               absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size() && static_cast<int64_t>(in.size()) == Count(in_extents));
  const MovedAxes axes = MergeAxes(in_extents, permutation);
  // The innermost axis of the input. If it stays innermost, the data is copied in rows.
  const auto moved = std::find_if(axes.begin(), axes.end(),
                                  [](const MovedAxis& axis) { return axis.in_stride == 1; });
  if (axes.size() < 2 || moved == axes.end() - 1) {
    Strides strides;
    const Strides in_strides = DenseStrides(in_extents);
    for (int i = 0; i < kRank; ++i) strides[i] = in_strides[permutation[i]];
    const Extents out_extents = Permuted(in_extents, permutation);
    return CopyBlock(out_extents, in.data(), strides, out.data(), DenseStrides(out_extents));
  }
  // Transposes planes of (innermost axis of the output) x (innermost axis of the input), in strips
  // of the latter.
  const MovedAxis rows = axes.back(), columns = *moved;
  constexpr int64_t kStrip = 64;
  Extents extents = {1, 1, 1, 1, 1};
  Strides in_steps{}, out_steps{};
  int next = 0;
  for (const MovedAxis& axis : axes) {
    if (axis.in_stride == 1 || axis.out_stride == 1) continue;
    extents[next] = axis.extent;
    in_steps[next] = axis.in_stride;
    out_steps[next++] = axis.out_stride;
  }
  const int64_t strips = (columns.extent + kStrip - 1) / kStrip;
  extents[next] = strips;
  in_steps[next] = kStrip;
  out_steps[next] = kStrip * columns.out_stride;
  ParallelForItems(Count(extents), rows.extent * kStrip, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t from = 0, to = 0, rest = item;
      for (int i = next; i >= 0; --i) {
        from += rest % extents[i] * in_steps[i];
        to += rest % extents[i] * out_steps[i];
        rest /= extents[i];
      }
      const int64_t width = std::min(kStrip, columns.extent - item % strips * kStrip);
      HWY_DYNAMIC_DISPATCH(TransposePlane)
      (in.data() + from, rows.in_stride, out.data() + to, columns.out_stride, rows.extent, width);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
