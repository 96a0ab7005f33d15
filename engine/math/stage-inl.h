// engine/math/stage-inl.h: fills a Stage (conv_state.h). Internal.
#if defined(ENGINE_MATH_STAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_STAGE_INL_H_
#undef ENGINE_MATH_STAGE_INL_H_
#else
#define ENGINE_MATH_STAGE_INL_H_
#endif

#include <cstdint>

#include "engine/math/conv_state.h"
#include "engine/math/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Columns [first, first + count) of a row of `width`, `outside` beyond it.
HWY_INLINE void WidenPadded(const Half* row, int64_t width, float outside, int64_t first,
                            int64_t count, float* to) {
  const int64_t begin = HWY_MIN(HWY_MAX(-first, 0), count);
  const int64_t end = HWY_MAX(HWY_MIN(width - first, count), begin);
  for (int64_t i = 0; i < begin; ++i) to[i] = outside;
  WidenRun(row + first + begin, to + begin, end - begin);
  for (int64_t i = end; i < count; ++i) to[i] = outside;
}

// to[phase * phase_size + i] = from[i * stride + phase]
HWY_INLINE void SplitPhases(const float* from, int64_t count, int64_t stride, int64_t phase_size,
                            float* to) {
  int64_t i = 0;
  if (stride == 2) {
    const DF df;
    VF even, odd;
    for (; (i + kLanes) * 2 <= count; i += kLanes) {
      hn::LoadInterleaved2(df, from + i * 2, even, odd);
      hn::StoreU(even, df, to + i);
      hn::StoreU(odd, df, to + phase_size + i);
    }
  }
  for (; i * stride < count; ++i) {
    for (int64_t phase = 0; phase < stride && i * stride + phase < count; ++phase) {
      to[phase * phase_size + i] = from[i * stride + phase];
    }
  }
}

// Whether some output row of the stage reads input row `row` of it.
HWY_INLINE bool StageRowIsRead(const ConvGeometry& g, const Stage& s, int64_t row) {
  for (int64_t kh = 0; kh < g.kernel_h; ++kh) {
    const int64_t from_tap = row - kh * g.dilation_h;
    if (from_tap >= 0 && from_tap % g.stride_h == 0 &&
        from_tap / g.stride_h <= s.last_row - s.first_row) {
      return true;
    }
  }
  return false;
}

// One channel; `plane` is its input, `outside` what lies around it. Room behind the columns of a row is left as it is: it is read
// into lanes that nobody uses.
HWY_INLINE void StageChannel(const ConvGeometry& g, const Stage& s, float outside,
                             const Half* plane, float* to) {
  const int64_t top = s.first_row * g.stride_h - g.pad_top;
  const int64_t left = s.first_column * g.stride_w - g.pad_left;
  for (int64_t row = 0; row < s.rows; ++row, to += s.row_size) {
    if (!StageRowIsRead(g, s, row)) continue;
    if (top + row < 0 || top + row >= g.in_h) {
      for (int64_t i = 0; i < s.row_size; ++i) to[i] = outside;
      continue;
    }
    const Half* from = plane + (top + row) * g.in_w;
    if (g.stride_w == 1) {
      WidenPadded(from, g.in_w, outside, left, s.input_columns, to);
    } else {
      float* columns = ThreadScratch<float>(ScratchUse::kRow, s.input_columns);
      WidenPadded(from, g.in_w, outside, left, s.input_columns, columns);
      SplitPhases(columns, s.input_columns, g.stride_w, s.phase_size, to);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
