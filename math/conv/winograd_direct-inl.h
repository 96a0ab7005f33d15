// math/conv/winograd_direct-inl.h: the direct sums of winograd.cc, for rows of tiles whose inputs
// are too large for Winograd's algorithm. Each output is summed in the order of channels and taps.
// Internal; compiled once per instruction set.
#if defined(ANEMONE_MATH_CONV_WINOGRAD_DIRECT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_WINOGRAD_DIRECT_INL_H_
#undef ANEMONE_MATH_CONV_WINOGRAD_DIRECT_INL_H_
#else
#define ANEMONE_MATH_CONV_WINOGRAD_DIRECT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "math/conv/winograd-inl.h"
#include "math/core/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Positions and input channels that are processed together: the weights of a block fit the
// first-level cache, what the positions read, unfolded, fits the second-level cache.
constexpr int64_t kDirectPositions = 200;
constexpr int64_t kDirectChannels = 16;

// Of the input that a row of outputs reads.
template <class F>
HWY_INLINE int64_t WidthOf(const OutputArea& area) {
  return area.columns + F::kAcross - 1;
}

// Copies the input rows that outputs of rows [first, last] read, as [row][column], with zeros
// outside the image.
template <class F>
HWY_INLINE void StageInput(const ConvGeometry& g, const OutputArea& area, int64_t first,
                           int64_t last, const Half* plane, float* staged) {
  const int64_t width = WidthOf<F>(area), left = area.column - g.pad_left;
  const int64_t begin = std::clamp<int64_t>(-left, 0, width);
  const int64_t end = std::clamp<int64_t>(g.in_w - left, begin, width);
  const int64_t top = area.row - g.pad_top;
  for (int64_t row = top + first; row < top + last + F::kDown; ++row, staged += width) {
    if (row < 0 || row >= g.in_h) {
      std::fill_n(staged, width, 0.0f);
      continue;
    }
    std::fill_n(staged, begin, 0.0f);
    WidenRun(plane + row * g.in_w + left + begin, staged + begin, end - begin);
    std::fill(staged + end, staged + width, 0.0f);
  }
}

// Copies what each tap of outputs [first, first + count) reads: unfolded[tap][output]. Writes up to
// a vector past the end.
template <class F>
HWY_INLINE void UnfoldTaps(const OutputArea& area, int64_t first, int64_t count,
                           const float* staged, float* unfolded) {
  const int64_t first_column = first % area.columns;
  for (int64_t tap = 0; tap < F::kTaps; ++tap) {
    const float* from =
        staged + tap / F::kAcross * WidthOf<F>(area) + tap % F::kAcross + first_column;
    int64_t run = HWY_MIN(area.columns - first_column, count);
    for (int64_t left = count; left > 0;) {
      for (int64_t i = 0; i < run; i += kLanes) {
        hn::StoreU(hn::LoadU(DF(), from + i), DF(), unfolded + i);
      }
      unfolded += run;
      left -= run;
      from += run + F::kAcross - 1;
      run = HWY_MIN(area.columns, left);
    }
  }
}

// Rounds the sums of outputs [first, first + count) of the task's channels of a block, and stores
// them.
HWY_INLINE void StoreDirect(const WinogradTask& t, const OutputArea& area, int64_t channel,
                            int64_t first, int64_t count, const float* sums) {
  const ConvGeometry& g = *t.geometry;
  const int64_t begin = HWY_MAX(t.first_channel - channel, 0);
  const int64_t channels = HWY_MIN(kWinogradChannels, t.last_channel - channel);
  Half* const to = t.y + channel * g.y_plane + area.row * g.y_row + area.column;
  HWY_ALIGN Half rounded[kWinogradChannels];
  for (int64_t i = first; i < first + count; ++i, sums += kWinogradChannels) {
    for (int64_t k = begin; k < channels; k += kLanes) {
      VF sum[] = {
          hn::Add(hn::LoadU(DF(), sums + k), LoadFloatUpTo(t.bias + channel + k, channels - k))};
      LimitSums(t.epilogue.limits(), sum);
      StoreHalf(sum[0], rounded + k);
    }
    Half* const at = to + i / area.columns * g.y_row + i % area.columns;
    for (int64_t k = begin; k < channels; ++k) at[k * g.y_plane] = rounded[k];
  }
}

// Computes outputs [first, first + count) of an area, numbered row by row.
template <class F>
HWY_INLINE void ComputeOutputs(const WinogradTask& t, const OutputArea& area, int64_t first,
                               int64_t count) {
  constexpr int64_t kDepth = kDirectChannels * F::kTaps;
  const ConvGeometry& g = *t.geometry;
  const int64_t first_row = first / area.columns, last_row = (first + count - 1) / area.columns;
  const int64_t first_block = t.first_channel / kWinogradChannels;
  const int64_t last_block = CeilDiv(t.last_channel, kWinogradChannels);
  const int64_t block_size = count * kWinogradChannels;
  float* weights =
      ThreadScratch<float>(ScratchUse::kPanelB, kDepth * (kWinogradChannels + count) + kLanes +
                                                    (last_block - first_block) * block_size);
  float* sums = weights + kDepth * kWinogradChannels;
  float* unfolded = sums + (last_block - first_block) * block_size;
  float* staged = ThreadScratch<float>(
      ScratchUse::kStage, (last_row - first_row + F::kDown) * WidthOf<F>(area) + kLanes);
  for (int64_t from = 0; from < g.group_in; from += kDirectChannels) {
    const int64_t depth = HWY_MIN(kDirectChannels, g.group_in - from) * F::kTaps;
    for (int64_t k = 0; k < depth; k += F::kTaps) {
      const Half* plane = t.x + (from + k / F::kTaps) * g.in_h * g.in_w;
      StageInput<F>(g, area, first_row, last_row, plane, staged);
      UnfoldTaps<F>(area, first, count, staged, unfolded + k * count);
    }
    for (int64_t block = first_block; block < last_block; ++block) {
      const Half* of_block = t.weights + (block * g.depth() + from * F::kTaps) * kWinogradChannels;
      WidenRun(of_block, weights, depth * kWinogradChannels);
      MultiplyRows(count, depth, kWinogradChannels, unfolded, weights,
                   sums + (block - first_block) * block_size, from != 0,
                   of_block + g.depth() * kWinogradChannels);
    }
  }
  for (int64_t block = first_block; block < last_block; ++block) {
    StoreDirect(t, area, block * kWinogradChannels, first, count,
                sums + (block - first_block) * block_size);
  }
}

// Computes a task without the rest of the epilogue.
template <class F>
HWY_INLINE void ComputeDirectly(const WinogradTask& t) {
  ForAreas(t, [&](const OutputArea& area) HWY_ATTR {
    const int64_t outputs = area.rows * area.columns, part = EvenPart(outputs, kDirectPositions);
    for (int64_t i = 0; i < outputs; i += part) {
      ComputeOutputs<F>(t, area, i, HWY_MIN(part, outputs - i));
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
