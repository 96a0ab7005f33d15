// math/conv/winograd-inl.h: the arithmetic of winograd.cc: the transforms of weights and sums, and
// the products between them; for that of inputs see winograd_input-inl.h. Internal; compiled once
// per instruction set.
#ifndef ANEMONE_MATH_CONV_WINOGRAD_ONCE_H_
#define ANEMONE_MATH_CONV_WINOGRAD_ONCE_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "math/conv/conv_state.h"

namespace anemone::math {

inline constexpr int64_t kReach = 6;  // inputs that a tile reads along a transformed axis

// Outputs of a tile along an axis with this many taps. An axis with one tap is not transformed.
constexpr int64_t TileSize(int64_t taps) { return taps == 1 ? 1 : kReach + 1 - taps; }

// The sizes of a kernel's taps and tiles. A tile reads kDeep x kReach inputs, needs as many
// products, and has kHigh x kWide outputs.
template <int64_t kTapsDown, int64_t kTapsAcross>
struct Filter {
  static constexpr int64_t kDown = kTapsDown, kAcross = kTapsAcross, kTaps = kDown * kAcross;
  static constexpr int64_t kHigh = TileSize(kDown), kWide = TileSize(kAcross);
  static constexpr int64_t kDeep = kHigh + kDown - 1;
  static constexpr int64_t kPoints = kDeep * kReach;
};

inline constexpr int64_t kStepChannels = 64;  // input channels summed at a time
// Output channels are divided between tasks in whole parts of a block of kWinogradChannels.
inline constexpr int64_t kPartChannels = 16;
inline constexpr uint16_t kImmodestBits = 0x7400;  // 2^14 as a Half: near the end of fp16's range
// Space between arrays that are read together, so that they use different sets of a cache.
inline constexpr int64_t kApart = 16;

// Whether |half| is below 2^14.
inline bool IsModest(Half half) { return (half.bits & 0x7fff) < kImmodestBits; }

inline int64_t TileRows(const ConvGeometry& g) { return CeilDiv(g.out_h, TileSize(g.kernel_h)); }
inline int64_t TileColumns(const ConvGeometry& g) { return CeilDiv(g.out_w, TileSize(g.kernel_w)); }

// The work of one task: a run of tiles, numbered row by row, in one group of one image, and a range
// of output channels.
struct WinogradTask {
  const ConvGeometry* geometry;
  const Half* weights;  // of the group: [channel / 32][input channel][tap][32]
  const float* bias;    // at the first channel of the group; x and y too
  const Half* x;
  Half* y;
  Epilogue epilogue;
  int64_t first_tile, tiles;
  int64_t first_channel, last_channel;  // first_channel is a multiple of kPartChannels
};

// A rectangle of outputs.
struct OutputArea {
  int64_t row, column;  // of the first
  int64_t rows, columns;
};

// Calls body(area) for the outputs of a task: at most a part of a row of tiles, whole rows, and
// another part of a row.
template <class Body>
void ForAreas(const WinogradTask& t, const Body& body) {
  const ConvGeometry& g = *t.geometry;
  const int64_t width = TileColumns(g), end = t.first_tile + t.tiles;
  const int64_t high = TileSize(g.kernel_h), wide = TileSize(g.kernel_w);
  for (int64_t tile = t.first_tile; tile < end;) {
    const int64_t column = tile % width, columns = std::min(end - tile, width - column);
    const int64_t rows = columns == width ? (end - tile) / width : 1;
    const OutputArea first{tile / width * high, column * wide, rows * high, columns * wide};
    body(OutputArea{first.row, first.column, std::min(first.rows, g.out_h - first.row),
                    std::min(first.columns, g.out_w - first.column)});
    tile += rows * columns;
  }
}

}  // namespace anemone::math
#endif  // ANEMONE_MATH_CONV_WINOGRAD_ONCE_H_

#if defined(ANEMONE_MATH_CONV_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_WINOGRAD_INL_H_
#undef ANEMONE_MATH_CONV_WINOGRAD_INL_H_
#else
#define ANEMONE_MATH_CONV_WINOGRAD_INL_H_
#endif

#include "hwy/cache_control.h"
#include "math/core/simd-inl.h"
#include "math/gemm/panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Tiles multiplied at a time: their sums, for two vectors of output channels, take most of the
// vector registers.
#undef ANEMONE_MATH_POINT_ROWS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define ANEMONE_MATH_POINT_ROWS 12
#else
#define ANEMONE_MATH_POINT_ROWS 6
#endif

HWY_INLINE VF Times(float factor, VF x) { return hn::Mul(hn::Set(DF(), factor), x); }
HWY_INLINE VF AddTimes(VF x, float factor, VF y) { return hn::MulAdd(hn::Set(DF(), factor), y, x); }

// The three transforms along one axis, which the article (see winograd.cc) writes as the matrices
// B', G and A'. InputPoints() calls put(point, value): compilers keep arrays in memory.
template <class Put>
HWY_INLINE void InputPoints(VF d0, VF d1, VF d2, VF d3, VF d4, VF d5, const Put& put) {
  const VF a = AddTimes(d4, -4, d2);
  const VF b = AddTimes(d3, -4, d1);
  const VF c = hn::Sub(d4, d2);
  const VF e = Times(2, hn::Sub(d3, d1));
  put(0, AddTimes(AddTimes(d4, -5, d2), 4, d0));
  put(1, hn::Add(a, b));
  put(2, hn::Sub(a, b));
  put(3, hn::Add(c, e));
  put(4, hn::Sub(c, e));
  put(5, AddTimes(AddTimes(d5, -5, d3), 4, d1));
}
template <int64_t kTaps>
HWY_INLINE void WeightPoints(const VF (&g)[kTaps], VF (&to)[kReach]) {
  static_assert(kTaps == 3 || kTaps == 5);
  VF even = hn::Add(g[0], g[2]), odd = g[1];
  VF far = AddTimes(Times(1.0f / 24, g[0]), 1.0f / 6, g[2]), middle = Times(1.0f / 12, g[1]);
  if constexpr (kTaps == 5) {
    even = hn::Add(even, g[4]), odd = hn::Add(odd, g[3]);
    far = AddTimes(far, 2.0f / 3, g[4]), middle = AddTimes(middle, 1.0f / 3, g[3]);
  }
  const VF outer = Times(-1.0f / 6, even), inner = Times(1.0f / 6, odd);
  to[0] = Times(0.25f, g[0]);
  to[1] = hn::Sub(outer, inner);
  to[2] = hn::Add(outer, inner);
  to[3] = hn::Add(far, middle);
  to[4] = hn::Sub(far, middle);
  to[5] = g[kTaps - 1];
}
template <int64_t kOutputs>
HWY_INLINE void Outputs(const VF (&m)[kReach], VF (&to)[kOutputs]) {
  static_assert(kOutputs == 2 || kOutputs == 4);
  const VF a = hn::Add(m[1], m[2]), b = hn::Sub(m[1], m[2]);
  const VF c = hn::Add(m[3], m[4]), e = hn::Sub(m[3], m[4]);
  to[0] = hn::Add(hn::Add(m[0], a), c);
  to[1] = AddTimes(b, 2, e);
  if constexpr (kOutputs == 4) {
    to[2] = AddTimes(a, 4, c);
    to[3] = AddTimes(b, 8, e);
  }
  to[kOutputs - 1] = hn::Add(to[kOutputs - 1], m[5]);
}

// Whether all magnitudes are below 2^14.
HWY_INLINE bool AreModest(const Half* from, int64_t count) {
  const hn::ScalableTag<uint16_t> d;
  const int64_t lanes = hn::Lanes(d);
  const auto magnitude = hn::Set(d, 0x7fff), limit = hn::Set(d, kImmodestBits);
  auto most = hn::Zero(d);
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    most = hn::Max(most, hn::And(hn::LoadU(d, bits + i), magnitude));
  }
  bool modest = hn::AllTrue(d, hn::Lt(most, limit));
  return modest && std::all_of(from + i, from + count, IsModest);
}

// Transforms the weights of `channels` input channels and `outputs` output channels to
// points[point][channel][32].
template <class F>
HWY_INLINE void TransformWeights(const Half* weights, int64_t channels, int64_t outputs,
                                 int64_t point_size, float* points) {
  const DF df;
  for (int64_t i = 0; i < channels * kWinogradChannels; i += kLanes) {
    const int64_t lane = i % kWinogradChannels;
    if (lane >= outputs) continue;
    const Half* from = weights + (i - lane) * F::kTaps + lane;
    VF rows[F::kDeep][F::kAcross];
    for (int64_t j = 0; j < F::kAcross; ++j) {
      VF taps[F::kDown];
      for (int64_t r = 0; r < F::kDown; ++r) {
        taps[r] = LoadHalf(from + (r * F::kAcross + j) * kWinogradChannels);
      }
      if constexpr (F::kDown == 1) {
        rows[0][j] = taps[0];
      } else {
        VF column[F::kDeep];
        WeightPoints(taps, column);
        for (int64_t r = 0; r < F::kDeep; ++r) rows[r][j] = column[r];
      }
    }
    for (int64_t r = 0; r < F::kDeep; ++r) {
      VF row[kReach];
      WeightPoints(rows[r], row);
      for (int64_t j = 0; j < kReach; ++j) {
        hn::StoreU(row[j], df, points + (r * kReach + j) * point_size + i);
      }
    }
  }
}

// sums[tile][32] (+)= input[channel][tile] * weights[channel][32] for kVectors vectors of output
// channels. Prefetches one cache line of `next`, the data that is read after this, per channel.
template <int kVectors, int kRows>
HWY_INLINE void PointTile(int64_t channels, const float* HWY_RESTRICT input, int64_t input_step,
                          const float* HWY_RESTRICT weights, float* HWY_RESTRICT sums,
                          bool accumulate, const char* next) {
  const DF df;
  VF sum[kRows][kVectors];
  HWY_UNROLL(12)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      float* at = sums + r * kWinogradChannels + v * kLanes;
      sum[r][v] = accumulate ? hn::LoadU(df, at) : hn::Zero(df);
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    hwy::Prefetch(next + c * kLineBytes);
    VF w[kVectors];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(df, weights + v * kLanes);
    HWY_UNROLL(12)
    for (int r = 0; r < kRows; ++r) {
      const VF x = hn::Set(df, input[r]);
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(x, w[v], sum[r][v]);
    }
    input += input_step;
    weights += kWinogradChannels;
  }
  HWY_UNROLL(12)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], df, sums + r * kWinogradChannels + v * kLanes);
    }
  }
}

template <int kVectors, int kRows>
HWY_INLINE void PointTiles(int64_t rows, int64_t channels, const float* input, int64_t input_step,
                           const float* weights, float* sums, bool accumulate, const char* next) {
  if (rows == kRows) {
    return PointTile<kVectors, kRows>(channels, input, input_step, weights, sums, accumulate, next);
  }
  if constexpr (kRows > 1) {
    PointTiles<kVectors, kRows - 1>(rows, channels, input, input_step, weights, sums, accumulate,
                                    next);
  }
}

// sums[row][32] (+)= input[channel][row] * weights[channel][32], for the first `outputs` of 32.
HWY_INLINE void MultiplyRows(int64_t count, int64_t channels, int64_t outputs, const float* input,
                             const float* weights, float* sums, bool accumulate, const void* next) {
  const int64_t rows = EvenPart(count, ANEMONE_MATH_POINT_ROWS);
  const char* ahead = static_cast<const char*>(next);
  constexpr int64_t kPair = 2 * kLanes;
  for (int64_t k = 0; k < outputs; k += kPair) {
    for (int64_t row = 0; row < count; row += rows) {
      const auto multiply = [&](auto vectors) HWY_ATTR {
        PointTiles<vectors(), ANEMONE_MATH_POINT_ROWS>(
            HWY_MIN(rows, count - row), channels, input + row, count, weights + k,
            sums + row * kWinogradChannels + k, accumulate, ahead);
      };
      if (kPair <= kPartChannels || k + kPair <= outputs) {
        multiply(std::integral_constant<int, 2>());
      } else {
        multiply(std::integral_constant<int, 1>());
      }
      ahead += channels * kLineBytes;
    }
  }
}

// Computes and rounds the outputs of one tile for a vector of channels. Output (i, j) is written to
// rounded + i * row_step + j * step.
template <class F>
HWY_INLINE void RoundTile(const float* sums, int64_t point_size, VF bias, const Limits* limits,
                          Half* rounded, int64_t row_step, int64_t step) {
  const DF df;
  VF columns[kReach][F::kHigh];
  for (int64_t j = 0; j < kReach; ++j) {
    VF in[F::kDeep];
    for (int64_t r = 0; r < F::kDeep; ++r) {
      in[r] = hn::LoadU(df, sums + (r * kReach + j) * point_size);
    }
    if constexpr (F::kDown == 1) {
      columns[j][0] = in[0];
    } else {
      Outputs(in, columns[j]);
    }
  }
  for (int64_t i = 0; i < F::kHigh; ++i) {
    VF in[kReach], out[F::kWide];
    for (int64_t j = 0; j < kReach; ++j) in[j] = columns[j][i];
    Outputs(in, out);
    for (int64_t j = 0; j < F::kWide; ++j) out[j] = hn::Add(out[j], bias);
    LimitSums(limits, out);
    for (int64_t j = 0; j < F::kWide; ++j) StoreHalf(out[j], rounded + i * row_step + j * step);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
