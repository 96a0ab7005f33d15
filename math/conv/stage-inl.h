// math/conv/stage-inl.h: fills a Stage (conv_state.h). Internal.
#if defined(ANEMONE_MATH_CONV_STAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_STAGE_INL_H_
#undef ANEMONE_MATH_CONV_STAGE_INL_H_
#else
#define ANEMONE_MATH_CONV_STAGE_INL_H_
#endif

#include <cstdint>

#include "math/conv/conv_state.h"
#include "math/core/scratch.h"
#include "math/core/simd-inl.h"
#include "math/gemm/panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Splits `count` elements: even[i] = from[2 * i], and, unless `odd` is null, odd[i] =
// from[2 * i + 1].
HWY_INLINE void SplitPairs(const Half* from, int64_t count, float* even, float* odd) {
  const DF df;
  const DU du;
  const DH dh;
  const auto* pairs = reinterpret_cast<const uint32_t*>(from);
  const auto evens = [&](VU both) HWY_ATTR { return Widen(hn::TruncateTo(dh, both)); };
  const auto odds = [&](VU both)
                        HWY_ATTR { return Widen(hn::TruncateTo(dh, hn::ShiftRight<16>(both))); };
  int64_t i = 0;
  for (; 2 * (i + kLanes) <= count; i += kLanes) {
    const VU both = hn::LoadU(du, pairs + i);
    hn::StoreU(evens(both), df, even + i);
    if (odd != nullptr) hn::StoreU(odds(both), df, odd + i);
  }
  const int64_t rest = count - 2 * i;
#if ANEMONE_MATH_MASKED_HALF
  if (rest == 0) return;
  const hn::Repartition<uint16_t, DU> d;
  const auto* bits = reinterpret_cast<const uint16_t*>(pairs + i);
  const VU both =
      hn::BitCast(du, hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(rest)), d, bits));
  StoreFloatN(evens(both), even + i, (rest + 1) / 2);
  if (odd != nullptr) StoreFloatN(odds(both), odd + i, rest / 2);
#else
  for (int64_t j = 0; j < rest; j += 2, ++i) {
    even[i] = ToFloat(from[2 * i]);
    if (odd != nullptr && j + 1 < rest) odd[i] = ToFloat(from[2 * i + 1]);
  }
#endif
}

// Copies the inside of one input row, from `from` on, to its row of the stage.
HWY_INLINE void StageRow(const Stage& s, const Half* from, float* to) {
  const int64_t begin = s.begin_inside, end = s.end_inside;
  if (s.unit_w == 1 && s.stride_w == 1) return WidenRun(from, to + begin, end - begin);
  if (s.unit_w == 2 && s.stride_w == 1 && begin < end) {
    return SplitPairs(from, (end - begin) * 2 - 1, to + begin, nullptr);
  }
  if (s.unit_w == 1 && s.stride_w == 2) {
    float* const even = to + (begin + 1) / 2;
    float* const odd = to + s.phase_size + begin / 2;
    return begin % 2 == 0 ? SplitPairs(from, end - begin, even, odd)
                          : SplitPairs(from, end - begin, odd, even);
  }
  constexpr int64_t kMost = 256;
  HWY_ALIGN float near[kMost];
  const int64_t stride = s.stride_w, unit = s.unit_w;
  for (int64_t j = begin; j < end; j += kMost, from += kMost * unit) {
    const int64_t count = HWY_MIN(end - j, kMost);
    if (unit == 1) {
      WidenRun(from, near, count);
    } else {
      for (int64_t i = 0; i < count; ++i) near[i] = ToFloat(from[i * unit]);
    }
    for (int64_t first = 0; first < HWY_MIN(stride, count); ++first) {
      float* phase = to + (j + first) % stride * s.phase_size + (j + first) / stride;
      for (int64_t i = first; i < count; i += stride) *phase++ = near[i];
    }
  }
}

// Whether an output row reads staged row `row`.
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

// Fills the stages of `channels` channels with the value of the padding. Once is enough for all
// channels that reuse this memory, because StageChannel() writes the same inside each time.
HWY_INLINE void StageOutside(const Stage& s, float outside, int64_t channels, float* to) {
  const DF df;
  const VF value = hn::Set(df, outside);
  const int64_t count = channels * s.channel_size;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(value, df, to + i);
  for (; i < count; ++i) to[i] = outside;
}

// Copies the inside of one channel, whose input is `plane`, to its stage.
HWY_INLINE void StageChannel(const ConvGeometry& g, const Stage& s, const Half* plane, float* to) {
  const int64_t top = s.first_row * g.stride_h - g.pad_top;
  const int64_t left = s.first_column * g.stride_w - g.pad_left + s.begin_inside * s.unit_w;
  const bool rows_between = s.dilation_h > 1 || g.kernel_h < s.stride_h;
  for (int64_t row = 0; row < s.rows; ++row, to += s.row_size) {
    if (rows_between && !StageRowIsRead(g, s, row)) continue;
    const int64_t input_row = top + row * s.unit_h;
    if (input_row < 0 || input_row >= g.in_h) continue;
    StageRow(s, plane + input_row * g.in_w + left, to);
  }
}

// The offset of each tap within a staged channel. In thread scratch.
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
