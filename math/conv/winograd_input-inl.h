// math/conv/winograd_input-inl.h: the transform of the input of winograd.cc. Internal; compiled
// once per instruction set.
#if defined(ANEMONE_MATH_CONV_WINOGRAD_INPUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_WINOGRAD_INPUT_INL_H_
#undef ANEMONE_MATH_CONV_WINOGRAD_INPUT_INL_H_
#else
#define ANEMONE_MATH_CONV_WINOGRAD_INPUT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/cache_control.h"
#include "math/conv/winograd-inl.h"
#include "math/core/interleave-inl.h"
#include "math/core/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The layout of some staged input channels. The rows of tiles are stored one after the other. Each
// has a slot of as many columns as outputs per tile, and `more` slots that its last tile also
// reads. After the last row of tiles there is one more row of slots, of which tiles read the first
// rows of elements if they are transformed along columns. A task within a row of tiles has only
// columns that it reads. Channels of few tiles are staged together, so that vectors are full.
struct Slots {
  int64_t columns;       // of tiles
  int64_t more;          // slots that a tile reads after its own
  int64_t per_row;       // slots per row of tiles: columns + more
  int64_t first;         // slot of the first tile, which is in the first row
  int64_t rows;          // of tiles
  int64_t tiles;         // of a channel
  int64_t per_channel;   // slots of a channel
  int64_t channels = 1;  // staged together
  int64_t count;         // slots that tiles read, from the first on, without the last extra row
  int64_t size;          // all slots, rounded up to whole vectors, and one spare vector
  int64_t first_column;  // input column of staged column 0
  int64_t begin, end;    // staged columns that are inside the image

  explicit Slots(const WinogradTask& t) {
    const ConvGeometry& g = *t.geometry;
    const int64_t wide = TileSize(g.kernel_w);
    columns = TileColumns(g);
    first = t.first_tile % columns;
    first_column = -g.pad_left;
    if (first + t.tiles <= columns) {
      first_column += first * wide;
      first = 0;
      columns = t.tiles;
    }
    more = CeilDiv(kReach, wide) - 1;
    per_row = columns + more;
    tiles = t.tiles;
    rows = CeilDiv(first + tiles, columns);
    per_channel = (rows + 1) * per_row;
    const auto vectors = [&](int64_t n) { return CeilDiv(CountOf(n), kLanes); };
    for (int64_t n = 2; n <= HWY_MIN(kMostStaged / per_channel, g.group_in); ++n) {
      if (vectors(n) * channels < vectors(channels) * n) channels = n;
    }
    count = CountOf(channels);
    size = RoundUp(channels * per_channel, kLanes) + kLanes;
    begin = HWY_MIN(HWY_MAX(-first_column, 0), wide * per_row);
    end = HWY_MAX(HWY_MIN(g.in_w - first_column, wide * per_row), begin);
  }
  // Slots from that of the first tile to that of another one, counted through the channels.
  int64_t BehindFirst(int64_t tile) const {
    const int64_t in_channel = tile % tiles;
    return tile / tiles * per_channel + in_channel + (first + in_channel) / columns * more;
  }

 private:
  static constexpr int64_t kMostStaged = 96;  // they fit the first-level cache

  int64_t CountOf(int64_t of_channels) const {
    return BehindFirst(of_channels * tiles - 1) + 1 + more;
  }
};

// Copies the rows of a channel to staged[row % kHigh][slot][kWide]. Elements outside the image are
// not written.
template <class F>
HWY_INLINE void StageRows(const WinogradTask& t, const Slots& slots, const Half* plane,
                          Half* staged) {
  const ConvGeometry& g = *t.geometry;
  const int64_t top = t.first_tile / TileColumns(g) * F::kHigh - g.pad_top;
  const int64_t last = slots.rows * F::kHigh + F::kDown - 1;
  for (int64_t row = 0; row < last; ++row) {
    const int64_t input_row = top + row;
    if (input_row < 0 || input_row >= g.in_h) continue;
    const int64_t slot = row % F::kHigh * slots.size + row / F::kHigh * slots.per_row;
    Half* const to = staged + slot * F::kWide;
    const Half* const from = plane + input_row * g.in_w + (slots.first_column + slots.begin);
    const int64_t count = slots.end - slots.begin;
    Half* const inside = to + slots.begin;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) StoreBits(LoadBits(from + i), inside + i);
    if (i < count) StoreBitsN(LoadBitsN(from + i, count - i), inside + i, count - i);
  }
}

// Splits by column: columns[row % kHigh][column % kWide][slot]. From here on, slots are counted
// from the first tile's.
template <class F>
HWY_INLINE void SplitColumns(const Slots& slots, const Half* staged, float* columns) {
  const DF df;
  const int64_t count = slots.count + (F::kDown > 1 ? slots.per_row : 0);
  for (int64_t r = 0; r < F::kHigh; ++r) {
    for (int64_t s = 0; s < count; s += kLanes) {
      const Half* from = staged + (r * slots.size + slots.first + s) * F::kWide;
      const auto* bits = reinterpret_cast<const uint16_t*>(from);
      VH split[F::kWide];
      if constexpr (F::kWide == 4) {
        hn::LoadInterleaved4(DH(), bits, split[0], split[1], split[2], split[3]);
      } else {
        hn::LoadInterleaved2(DH(), bits, split[0], split[1]);
      }
      for (int64_t p = 0; p < F::kWide; ++p) {
        hn::StoreU(Widen(split[p]), df, columns + (r * F::kWide + p) * slots.size + s);
      }
    }
  }
}

// Transforms along columns: points[row of the points][column % kWide][slot].
template <class F>
HWY_NOINLINE void TransformColumns(const Slots& slots, const float* columns, float* points) {
  const DF df;
  const int64_t size = slots.size, row = F::kWide * size, count = slots.count;
  const int64_t below = slots.per_row;  // the last rows are in the next row of tiles
  for (int64_t p = 0; p < F::kWide; ++p, columns += size, points += size) {
    for (int64_t s = 0; s < count; s += kLanes) {
      const float* from = columns + s;
      float* to = points + s;
      const auto at = [&](int64_t r) HWY_ATTR {
        return hn::LoadU(df, from + r % F::kHigh * row + r / F::kHigh * below);
      };
      InputPoints(at(0), at(1), at(2), at(3), at(4), at(5),
                  [&](int64_t r, VF value) HWY_ATTR { hn::StoreU(value, df, to + r * row); });
    }
  }
}

// The tiles in one vector of slots. Their numbers are consecutive: `first` is the first number and
// `lanes` has the lane of each.
struct SlotTiles {
  int64_t first;
  int32_t lanes[kLanes];
};

// The SlotTiles of all vectors of slots. In thread scratch.
HWY_INLINE const SlotTiles* FindTiles(const Slots& slots) {
  const int64_t vectors = CeilDiv(slots.count, kLanes);
  auto* const found = ThreadScratch<SlotTiles>(ScratchUse::kPieces, vectors);
  const int64_t count = slots.channels * slots.tiles;
  std::fill_n(found, vectors, SlotTiles{count, {}});
  const auto for_tiles = [&](const auto& take) {
    for (int64_t tile = 0; tile < count; ++tile) {
      const int64_t slot = slots.BehindFirst(tile);
      take(found[slot / kLanes], tile, slot % kLanes);
    }
  };
  for_tiles(
      [](SlotTiles& tiles, int64_t tile, int64_t) { tiles.first = std::min(tiles.first, tile); });
  for_tiles([](SlotTiles& tiles, int64_t tile, int64_t lane) {
    tiles.lanes[tile - tiles.first] = static_cast<int32_t>(lane);
  });
  return found;
}

// Transforms along rows: to[point * point_size + tile].
template <class F>
HWY_NOINLINE void TransformRows(const Slots& slots, const float* points, const SlotTiles* tiles,
                                int64_t point_size, float* to) {
  const DF df;
  const int64_t size = slots.size, count = slots.count;
  for (int64_t s = 0; s < count; s += kLanes, ++tiles) {
    const auto lanes = hn::SetTableIndices(df, tiles->lanes);
    float* point = to + tiles->first;
    const float* from = points + s;
    HWY_UNROLL(1)
    for (int64_t r = 0; r < F::kDeep; ++r, from += F::kWide * size) {
      const auto at = [&](int64_t j) HWY_ATTR {
        return hn::LoadU(df, from + j % F::kWide * size + j / F::kWide);
      };
      InputPoints(at(0), at(1), at(2), at(3), at(4), at(5),
                  [&](int64_t /*point*/, VF value) HWY_ATTR {
                    hn::StoreU(hn::TableLookupLanes(value, lanes), df, point);
                    point += point_size;
                  });
    }
  }
}

// Transforms the input to points[point][channel][tile]. May write up to a vector past the end; what
// is written past some channels is overwritten by the next. Prefetches the first step of `weights`,
// which are read after this.
template <class F>
HWY_INLINE void TransformInput(const WinogradTask& t, int64_t point_size, float* points,
                               const Half* weights) {
  constexpr int64_t kColumns = F::kHigh * F::kWide;
  const ConvGeometry& g = *t.geometry;
  const Slots slots(t);
  Half* staged = ThreadScratch<Half>(ScratchUse::kRow, kColumns * slots.size);
  std::fill_n(staged, kColumns * slots.size, kHalfZero);
  float* columns =
      ThreadScratch<float>(ScratchUse::kStage, (kColumns + F::kDeep * F::kWide) * slots.size);
  float* rows = columns + kColumns * slots.size;
  const SlotTiles* tiles = FindTiles(slots);
  for (int64_t next = 0; next < g.group_in; next += slots.channels) {
    // The last channels are as many as the others: some are transformed twice.
    const int64_t c = HWY_MIN(next, g.group_in - slots.channels);
    for (int64_t i = 0; i < slots.channels; ++i) {
      StageRows<F>(t, slots, t.x + (c + i) * g.in_h * g.in_w,
                   staged + i * slots.per_channel * F::kWide);
      for (int64_t tap = 0; tap < F::kTaps && c + i < kStepChannels; ++tap) {
        hwy::Prefetch(weights + ((c + i) * F::kTaps + tap) * kWinogradChannels);
      }
    }
    SplitColumns<F>(slots, staged, columns);
    if constexpr (F::kDown > 1) TransformColumns<F>(slots, columns, rows);
    TransformRows<F>(slots, F::kDown > 1 ? rows : columns, tiles, point_size, points + c * t.tiles);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
