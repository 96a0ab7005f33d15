// engine/math/winograd-inl.h: the arithmetic of winograd.cc: transforms of inputs, weights and
// sums, and the products between. Internal; compiled once for each set of instructions.
#ifndef ENGINE_MATH_WINOGRAD_TASK_
#define ENGINE_MATH_WINOGRAD_TASK_

#include <algorithm>
#include <cstdint>

#include "engine/math/conv_state.h"

namespace anemone::math {

inline constexpr int64_t kTile = 4;                  // outputs of a tile, by side
inline constexpr int64_t kReach = 6;                 // inputs of a tile, by side
inline constexpr int64_t kPoints = kReach * kReach;  // products of a tile
inline constexpr int64_t kTaps = 9;
inline constexpr int64_t kStepChannels = 64;       // input channels summed at a time
inline constexpr uint16_t kImmodestBits = 0x7400;  // of 2^14: near the end of fp16's range
// Room between arrays that are walked together, or they would share the sets of a cache.
inline constexpr int64_t kApart = 16;
inline constexpr int64_t kLineFloats = 16;  // of a cache's line

// Whether the magnitude is below 2^14.
inline bool IsModest(Half half) { return (half.bits & 0x7fff) < kImmodestBits; }

// A rectangle of tiles of one group of one image, and the 32s of output channels to compute.
struct WinogradTask {
  const ConvGeometry* geometry;
  const Half* weights;  // of the group: [channel / 32][input channel][tap][32]
  const float* bias;    // of the group
  const Half* x;
  Half* y;
  Epilogue epilogue;
  int64_t tile_row, tile_rows, tile_column, tile_columns;
  int64_t first_block, last_block;

  int64_t tiles() const { return tile_rows * tile_columns; }
};

}  // namespace anemone::math
#endif  // ENGINE_MATH_WINOGRAD_TASK_

#if defined(ENGINE_MATH_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_WINOGRAD_INL_H_
#undef ENGINE_MATH_WINOGRAD_INL_H_
#else
#define ENGINE_MATH_WINOGRAD_INL_H_
#endif

#include "engine/math/panels.h"
#include "engine/math/scratch.h"
#include "engine/math/simd-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Half the registers hold sums of two vectors of output channels by as many tiles.
#undef ANEMONE_MATH_POINT_ROWS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define ANEMONE_MATH_POINT_ROWS 12
#else
#define ANEMONE_MATH_POINT_ROWS 6
#endif

HWY_INLINE VF Times(float factor, VF x) { return hn::Mul(hn::Set(DF(), factor), x); }
HWY_INLINE VF AddTimes(VF x, float factor, VF y) { return hn::MulAdd(hn::Set(DF(), factor), y, x); }

// The three transforms along one axis, as matrices in the article: B', G, A'.
HWY_INLINE void InputPoints(const VF (&d)[kReach], VF (&to)[kReach]) {
  const VF a = AddTimes(d[4], -4, d[2]);
  const VF b = AddTimes(d[3], -4, d[1]);
  const VF c = hn::Sub(d[4], d[2]);
  const VF e = Times(2, hn::Sub(d[3], d[1]));
  to[0] = AddTimes(AddTimes(d[4], -5, d[2]), 4, d[0]);
  to[1] = hn::Add(a, b);
  to[2] = hn::Sub(a, b);
  to[3] = hn::Add(c, e);
  to[4] = hn::Sub(c, e);
  to[5] = AddTimes(AddTimes(d[5], -5, d[3]), 4, d[1]);
}
HWY_INLINE void WeightPoints(const VF g0, const VF g1, const VF g2, VF (&to)[kReach]) {
  const VF outer = Times(-1.0f / 6, hn::Add(g0, g2));
  const VF inner = Times(1.0f / 6, g1);
  const VF far = AddTimes(Times(1.0f / 24, g0), 1.0f / 6, g2);
  const VF middle = Times(1.0f / 12, g1);
  to[0] = Times(0.25f, g0);
  to[1] = hn::Sub(outer, inner);
  to[2] = hn::Add(outer, inner);
  to[3] = hn::Add(far, middle);
  to[4] = hn::Sub(far, middle);
  to[5] = g2;
}
HWY_INLINE void Outputs(const VF (&m)[kReach], VF (&to)[kTile]) {
  const VF a = hn::Add(m[1], m[2]), b = hn::Sub(m[1], m[2]);
  const VF c = hn::Add(m[3], m[4]), e = hn::Sub(m[3], m[4]);
  to[0] = hn::Add(hn::Add(m[0], a), c);
  to[1] = AddTimes(b, 2, e);
  to[2] = AddTimes(a, 4, c);
  to[3] = hn::Add(AddTimes(b, 8, e), m[5]);
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

// The input of a task: rows of tiles lie side by side, a slot for each tile and one for what its
// last tile reads beyond.
struct Slots {
  int64_t per_row;  // tiles of a row and one
  int64_t count;
  int64_t size;  // of an array of slots, whole vectors with one to spare
  explicit Slots(const WinogradTask& t)
      : per_row(t.tile_columns + 1),
        count(t.tile_rows * per_row),
        size(RoundUp(count + 1, kLanes) + kLanes) {}
};

// Columns [first, first + count) of a row of `width`, 0 beyond it.
HWY_INLINE void WidenPadded(const Half* row, int64_t width, int64_t first, int64_t count,
                            float* to) {
  const int64_t begin = HWY_MIN(HWY_MAX(-first, 0), count);
  const int64_t end = HWY_MAX(HWY_MIN(width - first, count), begin);
  for (int64_t i = 0; i < begin; ++i) to[i] = 0.0f;
  WidenRun(row + first + begin, to + begin, end - begin);
  for (int64_t i = end; i < count; ++i) to[i] = 0.0f;
}

// stage[row of the tile][column % 4][slot] of one channel.
HWY_INLINE void StageTiles(const WinogradTask& t, const Slots& slots, const Half* plane,
                           float* stage) {
  const ConvGeometry& g = *t.geometry;
  const DF df;
  float* row = ThreadScratch<float>(ScratchUse::kRow, kTile * (slots.per_row + kLanes));
  for (int64_t i = 0; i < t.tile_rows; ++i) {
    for (int64_t r = 0; r < kReach; ++r) {
      float* to = stage + r * kTile * slots.size + i * slots.per_row;
      const int64_t input_row = (t.tile_row + i) * kTile + r - g.pad_top;
      if (input_row < 0 || input_row >= g.in_h) {
        for (int64_t s = 0; s < slots.per_row; s += kLanes) {
          for (int64_t p = 0; p < kTile; ++p) hn::StoreU(hn::Zero(df), df, to + p * slots.size + s);
        }
        continue;
      }
      WidenPadded(plane + input_row * g.in_w, g.in_w, t.tile_column * kTile - g.pad_left,
                  kTile * slots.per_row, row);
      for (int64_t s = 0; s < slots.per_row; s += kLanes) {
        VF a, b, c, d;
        hn::LoadInterleaved4(df, row + kTile * s, a, b, c, d);
        hn::StoreU(a, df, to + s);
        hn::StoreU(b, df, to + slots.size + s);
        hn::StoreU(c, df, to + 2 * slots.size + s);
        hn::StoreU(d, df, to + 3 * slots.size + s);
      }
    }
  }
}

// Drops the slots that are no tiles from what the vectors of slots become.
HWY_INLINE void TransformChannel(const WinogradTask& t, const Slots& slots, float* stage,
                                 int64_t point_size, float* to) {
  const DF df;
  for (int64_t s = 0; s < slots.count; s += kLanes) {
    for (int64_t p = 0; p < kTile; ++p) {
      float* column = stage + p * slots.size + s;
      VF in[kReach], out[kReach];
      for (int64_t r = 0; r < kReach; ++r) in[r] = hn::LoadU(df, column + r * kTile * slots.size);
      InputPoints(in, out);
      for (int64_t r = 0; r < kReach; ++r) hn::StoreU(out[r], df, column + r * kTile * slots.size);
    }
  }
  for (int64_t s = 0, tile = 0; s < slots.count; s += kLanes) {
    HWY_ALIGN float is_tile[kLanes];
    int64_t tiles = 0;
    for (int64_t i = 0; i < kLanes; ++i) {
      const bool yes = s + i < slots.count && (s + i) % slots.per_row != t.tile_columns;
      is_tile[i] = yes ? 1.0f : 0.0f;
      tiles += yes ? 1 : 0;
    }
    const auto mask = hn::Gt(hn::Load(df, is_tile), hn::Zero(df));
    for (int64_t r = 0; r < kReach; ++r) {
      const float* row = stage + r * kTile * slots.size + s;
      const VF in[kReach] = {hn::LoadU(df, row),
                             hn::LoadU(df, row + slots.size),
                             hn::LoadU(df, row + 2 * slots.size),
                             hn::LoadU(df, row + 3 * slots.size),
                             hn::LoadU(df, row + 1),
                             hn::LoadU(df, row + slots.size + 1)};
      VF out[kReach];
      InputPoints(in, out);
      for (int64_t j = 0; j < kReach; ++j) {
        const VF kept = t.tile_rows == 1 ? out[j] : hn::Compress(out[j], mask);
        hn::StoreU(kept, df, to + (r * kReach + j) * point_size + tile);
      }
    }
    tile += tiles;
  }
}

// points[point][channel][tile]; writes a vector past the end. A vector that reaches into the next
// channel is overwritten by it.
HWY_INLINE void TransformInput(const WinogradTask& t, int64_t point_size, float* points) {
  const ConvGeometry& g = *t.geometry;
  const Slots slots(t);
  float* stage = ThreadScratch<float>(ScratchUse::kStage, kReach * kTile * slots.size);
  for (int64_t c = 0; c < g.group_in; ++c) {
    StageTiles(t, slots, t.x + c * g.in_h * g.in_w, stage);
    TransformChannel(t, slots, stage, point_size, points + c * t.tiles());
  }
}

// `channels` input channels of one 32 of output channels: points[point][channel][32].
HWY_INLINE void TransformWeights(const Half* weights, int64_t channels, int64_t point_size,
                                 float* points) {
  const DF df;
  for (int64_t i = 0; i < channels * kWinogradChannels; i += kLanes) {
    const int64_t lane = i % kWinogradChannels;
    const Half* from = weights + (i - lane) * kTaps + lane;
    VF columns[3][kReach];
    for (int64_t j = 0; j < 3; ++j) {
      WeightPoints(LoadHalf(from + j * kWinogradChannels),
                   LoadHalf(from + (3 + j) * kWinogradChannels),
                   LoadHalf(from + (6 + j) * kWinogradChannels), columns[j]);
    }
    for (int64_t r = 0; r < kReach; ++r) {
      VF row[kReach];
      WeightPoints(columns[0][r], columns[1][r], columns[2][r], row);
      for (int64_t j = 0; j < kReach; ++j) {
        hn::StoreU(row[j], df, points + (r * kReach + j) * point_size + i);
      }
    }
  }
}

// sums[tile][32] (+)= input[channel][tile] * weights[channel][32] for two vectors of channels. On
// the way a line of `next` is fetched with each channel: of what is read after this.
template <int kRows>
HWY_INLINE void PointTile(int64_t channels, const float* HWY_RESTRICT input, int64_t input_step,
                          const float* HWY_RESTRICT weights, float* HWY_RESTRICT sums,
                          bool accumulate, const float* next) {
  const DF df;
  VF sum[kRows][2];
  HWY_UNROLL(12)
  for (int r = 0; r < kRows; ++r) {
    float* at = sums + r * kWinogradChannels;
    sum[r][0] = accumulate ? hn::LoadU(df, at) : hn::Zero(df);
    sum[r][1] = accumulate ? hn::LoadU(df, at + kLanes) : hn::Zero(df);
  }
  for (int64_t c = 0; c < channels; ++c) {
    hwy::Prefetch(next + c * kLineFloats);
    const VF w0 = hn::LoadU(df, weights), w1 = hn::LoadU(df, weights + kLanes);
    HWY_UNROLL(12)
    for (int r = 0; r < kRows; ++r) {
      const VF x = hn::Set(df, input[r]);
      sum[r][0] = hn::MulAdd(x, w0, sum[r][0]);
      sum[r][1] = hn::MulAdd(x, w1, sum[r][1]);
    }
    input += input_step;
    weights += kWinogradChannels;
  }
  HWY_UNROLL(12)
  for (int r = 0; r < kRows; ++r) {
    float* at = sums + r * kWinogradChannels;
    hn::StoreU(sum[r][0], df, at);
    hn::StoreU(sum[r][1], df, at + kLanes);
  }
}

template <int kRows>
HWY_INLINE void PointTiles(int64_t rows, int64_t channels, const float* input, int64_t input_step,
                           const float* weights, float* sums, bool accumulate, const float* next) {
  if (rows == kRows) {
    return PointTile<kRows>(channels, input, input_step, weights, sums, accumulate, next);
  }
  if constexpr (kRows > 1) {
    PointTiles<kRows - 1>(rows, channels, input, input_step, weights, sums, accumulate, next);
  }
}

// One point of all tiles; `next` is the input of the next one.
HWY_INLINE void MultiplyPoint(int64_t tiles, int64_t channels, const float* input,
                              const float* weights, float* sums, bool accumulate,
                              const float* next) {
  const int64_t rows = EvenPart(tiles, ANEMONE_MATH_POINT_ROWS);
  for (int64_t k = 0; k < kWinogradChannels; k += 2 * kLanes) {
    for (int64_t tile = 0; tile < tiles; tile += rows) {
      PointTiles<ANEMONE_MATH_POINT_ROWS>(HWY_MIN(rows, tiles - tile), channels, input + tile,
                                          tiles, weights + k, sums + tile * kWinogradChannels + k,
                                          accumulate, next);
      next += channels * kLineFloats;
    }
  }
}

// Outputs of one tile for a vector of channels: rounded[row][channel][column].
HWY_INLINE void RoundTile(const float* sums, int64_t point_size, VF bias, uint16_t* rounded) {
  const DF df;
  VF columns[kReach][kTile];
  for (int64_t j = 0; j < kReach; ++j) {
    VF in[kReach];
    for (int64_t r = 0; r < kReach; ++r) {
      in[r] = hn::LoadU(df, sums + (r * kReach + j) * point_size);
    }
    Outputs(in, columns[j]);
  }
  for (int64_t i = 0; i < kTile; ++i) {
    VF in[kReach], out[kTile];
    for (int64_t j = 0; j < kReach; ++j) in[j] = columns[j][i];
    Outputs(in, out);
    VH halves[kTile];
    for (int64_t j = 0; j < kTile; ++j) halves[j] = Narrow(hn::Add(out[j], bias));
    hn::StoreInterleaved4(halves[0], halves[1], halves[2], halves[3], DH(),
                          rounded + i * kTile * kLanes);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
