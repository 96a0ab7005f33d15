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

// to[phase * phase_size + i] = from[i * stride + phase]; room for two vectors is behind `from`.
HWY_INLINE void SplitPhases(const float* from, int64_t count, int64_t stride, int64_t phase_size,
                            float* to) {
  if (stride == 2) {
    const DF df;
    VF even, odd;
    for (int64_t i = 0; i < phase_size; i += kLanes) {
      hn::LoadInterleaved2(df, from + i * 2, even, odd);
      const int64_t rest = phase_size - i;
      if (rest >= kLanes) {
        hn::StoreU(even, df, to + i);
        hn::StoreU(odd, df, to + phase_size + i);
      } else {
        StoreFloatN(even, to + i, rest);
        StoreFloatN(odd, to + phase_size + i, rest);
      }
    }
    return;
  }
  for (int64_t i = 0; i * stride < count; ++i) {
    for (int64_t phase = 0; phase < stride && i * stride + phase < count; ++phase) {
      to[phase * phase_size + i] = from[i * stride + phase];
    }
  }
}

// to[i] = from[i * step] for i < count; room for two vectors is behind `from`.
HWY_INLINE void TakeEvery(const float* from, int64_t step, int64_t count, float* to) {
  if (step == 2) {
    const DF df;
    VF even, odd;
    for (int64_t i = 0; i < count; i += kLanes) {
      hn::LoadInterleaved2(df, from + i * 2, even, odd);
      if (count - i >= kLanes) {
        hn::StoreU(even, df, to + i);
      } else {
        StoreFloatN(even, to + i, count - i);
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

// Whether some output row of the stage reads its row `row`.
HWY_INLINE bool StageRowIsRead(const ConvGeometry& g, const Stage& s, int64_t row) {
  for (int64_t kh = 0; kh < g.kernel_h; ++kh) {
    const int64_t from_tap = row - kh * s.dilation_h;
    if (from_tap >= 0 && from_tap % s.stride_h == 0 &&
        from_tap / s.stride_h <= s.last_row - s.first_row) {
      return true;
    }
  }
  return false;
}

// One channel; `plane` is its input, `outside` what lies around it.
HWY_INLINE void StageChannel(const ConvGeometry& g, const Stage& s, float outside,
                             const Half* plane, float* to) {
  const int64_t top = s.first_row * g.stride_h - g.pad_top;
  const int64_t left = s.first_column * g.stride_w - g.pad_left;
  const int64_t input_span = (s.input_columns - 1) * s.unit_w + 1;
  const bool rows_between = s.dilation_h > 1 || g.kernel_h < s.stride_h;
  for (int64_t row = 0; row < s.rows; ++row, to += s.row_size) {
    if (rows_between && !StageRowIsRead(g, s, row)) continue;
    const int64_t input_row = top + row * s.unit_h;
    if (input_row < 0 || input_row >= g.in_h) {
      for (int64_t i = 0; i < s.row_size; ++i) to[i] = outside;
      continue;
    }
    const Half* from = plane + input_row * g.in_w;
    if (s.unit_w == 1 && s.stride_w == 1) {
      WidenPadded(from, g.in_w, outside, left, input_span, to);
      continue;
    }
    float* columns = ThreadScratch<float>(ScratchUse::kRow, input_span + 2 * kLanes);
    WidenPadded(from, g.in_w, outside, left, input_span, columns);
    if (s.unit_w > 1) TakeEvery(columns, s.unit_w, s.input_columns, s.stride_w > 1 ? columns : to);
    if (s.stride_w > 1) SplitPhases(columns, s.input_columns, s.stride_w, s.phase_size, to);
  }
}

// Offsets of the taps in the stage's channel.
HWY_INLINE const int64_t* TapOffsets(const ConvGeometry& g, const Stage& stage) {
  int64_t* taps = ThreadScratch<int64_t>(ScratchUse::kTaps, g.taps());
  for (int64_t t = 0; t < g.taps(); ++t) {
    taps[t] = stage.TapOffset(t / g.kernel_w, t % g.kernel_w);
  }
  return taps;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
