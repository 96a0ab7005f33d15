// 3x3 convolutions of stride 1 by minimal filtering, F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms
// for Convolutional Neural Networks", 2015): a tile of 6 x 6 inputs becomes 36 points, each point
// is a product over the input channels, and 36 sums become 4 x 4 outputs; 36 products instead of
// 144.
//
// A task takes a block of tiles through all its output channels:
//   points of the input    [point][channel][tile]            once
//   points of the weights  [point][channel of a step][32]    per 32 output channels and step
//   sums                   [point][tile][32]                 over the steps, then rounded
// all in the second-level cache but the first. Sums are fp32; points are no exact products, so
// their error is some 1e-6 of the largest value of the tile, far below the rounding of the result,
// but not of a result much smaller than its neighbours: a block with values that come near fp16's
// range, or with infinities, which would spread over their tile, is computed directly.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "engine/math/conv_state.h"
#include "engine/math/panels.h"
#include "engine/math/parallel.h"
#include "engine/math/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/math/winograd.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "engine/math/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

HWY_INLINE void StoreBlock(const WinogradTask& t, int64_t channel, const float* sums,
                           int64_t point_size) {
  const ConvGeometry& g = *t.geometry;
  const int64_t channels = HWY_MIN(kWinogradChannels, g.group_out - channel);
  HWY_ALIGN uint16_t rounded[kTile * kTile * kLanes];
  for (int64_t k = 0; k < channels; k += kLanes) {
    const int64_t lanes = HWY_MIN(kLanes, channels - k);
    const VF bias = LoadFloatN(t.bias + channel + k, lanes);
    for (int64_t tile = 0; tile < t.tiles(); ++tile) {
      RoundTile(sums + tile * kWinogradChannels + k, point_size, bias, rounded);
      const int64_t row = (t.tile_row + tile / t.tile_columns) * kTile;
      const int64_t column = (t.tile_column + tile % t.tile_columns) * kTile;
      const int64_t rows = HWY_MIN(kTile, g.out_h - row);
      const int64_t width = HWY_MIN(kTile, g.out_w - column);
      Half* to = t.y + (channel + k) * g.y_plane + row * g.y_row + column;
      for (int64_t lane = 0; lane < lanes; ++lane, to += g.y_plane) {
        const uint16_t* from = rounded + lane * kTile;
        for (int64_t i = 0; i < rows; ++i, from += kTile * kLanes) {
          void* at = to + i * g.y_row;
          if (width == kTile) {
            std::memcpy(at, from, kTile * sizeof(Half));
          } else {
            std::memcpy(at, from, width * sizeof(Half));
          }
        }
      }
    }
  }
}

// The outputs of the block of channels [first, last), which lie in runs of rows or parts of them.
HWY_INLINE void FinishChannels(const WinogradTask& t, int64_t first, int64_t last) {
  const ConvGeometry& g = *t.geometry;
  if (t.epilogue.is_empty()) return;
  const int64_t row = t.tile_row * kTile, column = t.tile_column * kTile;
  const int64_t rows = HWY_MIN(t.tile_rows * kTile, g.out_h - row);
  const int64_t columns = HWY_MIN(t.tile_columns * kTile, g.out_w - column);
  Half* to = t.y + first * g.y_plane + row * g.y_row + column;
  const int64_t channels = HWY_MIN(last, g.group_out) - first;
  if (columns == g.out_w) {
    return t.epilogue.FinishRuns(to, channels, rows * columns, g.y_plane);
  }
  for (int64_t k = 0; k < channels; ++k, to += g.y_plane) {
    t.epilogue.FinishRuns(to, rows, columns, g.y_row);
  }
}

// One position for a vector of output channels, tap by tap.
HWY_INLINE VF DirectSum(const WinogradTask& t, const Half* weights, int64_t row, int64_t column) {
  const ConvGeometry& g = *t.geometry;
  VF sum = hn::Zero(DF());
  for (int64_t c = 0; c < g.group_in; ++c) {
    for (int64_t tap = 0; tap < kTaps; ++tap, weights += kWinogradChannels) {
      const int64_t i = row - g.pad_top + tap / 3, j = column - g.pad_left + tap % 3;
      if (i < 0 || i >= g.in_h || j < 0 || j >= g.in_w) continue;
      const Half x = t.x[(c * g.in_h + i) * g.in_w + j];
      sum = hn::MulAdd(hn::Set(DF(), ToFloat(x)), LoadHalf(weights), sum);
    }
  }
  return sum;
}

void ComputeDirectly(const WinogradTask& t) {
  const ConvGeometry& g = *t.geometry;
  const int64_t last_row = HWY_MIN((t.tile_row + t.tile_rows) * kTile, g.out_h);
  const int64_t last_column = HWY_MIN((t.tile_column + t.tile_columns) * kTile, g.out_w);
  const int64_t last = HWY_MIN(t.last_block * kWinogradChannels, g.group_out);
  for (int64_t k = t.first_block * kWinogradChannels; k < last; k += kLanes) {
    const int64_t lane = k % kWinogradChannels;
    const Half* weights = t.weights + (k - lane) * g.depth() + lane;
    const int64_t lanes = HWY_MIN(kLanes, last - k);
    const VF bias = LoadFloatN(t.bias + k, lanes);
    for (int64_t row = t.tile_row * kTile; row < last_row; ++row) {
      for (int64_t column = t.tile_column * kTile; column < last_column; ++column) {
        HWY_ALIGN Half rounded[kLanes];
        const VF sum = hn::Add(DirectSum(t, weights, row, column), bias);
        StoreHalf(sum, rounded);
        Half* to = t.y + k * g.y_plane + row * g.y_row + column;
        for (int64_t i = 0; i < lanes; ++i) to[i * g.y_plane] = rounded[i];
      }
    }
  }
  FinishChannels(t, t.first_block * kWinogradChannels, last);
}

// All rows that the block reads, at their full width.
bool InputIsModest(const WinogradTask& t) {
  const ConvGeometry& g = *t.geometry;
  const int64_t top = HWY_MAX(t.tile_row * kTile - g.pad_top, 0);
  const int64_t bottom =
      HWY_MIN((t.tile_row + t.tile_rows) * kTile + kReach - kTile - g.pad_top, g.in_h);
  for (int64_t c = 0; c < g.group_in && top < bottom; ++c) {
    if (!AreModest(t.x + (c * g.in_h + top) * g.in_w, (bottom - top) * g.in_w)) return false;
  }
  return true;
}

void ComputeWinograd(const WinogradTask& t) {
  if (!InputIsModest(t)) return ComputeDirectly(t);
  const ConvGeometry& g = *t.geometry;
  const int64_t tiles = t.tiles();
  const int64_t step = HWY_MIN(kStepChannels, g.group_in);
  const int64_t input_size = g.group_in * tiles + kApart;
  const int64_t weight_size = step * kWinogradChannels + kApart;
  const int64_t sum_size = tiles * kWinogradChannels + kApart;
  // One piece, so that large pages hold it without much waste.
  float* weights = ThreadScratch<float>(ScratchUse::kPanelB,
                                        kPoints * (weight_size + sum_size + input_size) + kLanes);
  float* sums = weights + kPoints * weight_size;
  float* input = sums + kPoints * sum_size;
  TransformInput(t, input_size, input);
  for (int64_t block = t.first_block; block < t.last_block; ++block) {
    const Half* from = t.weights + block * kWinogradChannels * g.depth();
    for (int64_t first = 0; first < g.group_in; first += step) {
      const int64_t channels = HWY_MIN(step, g.group_in - first);
      TransformWeights(from + first * kTaps * kWinogradChannels, channels, weight_size, weights);
      for (int64_t p = 0; p < kPoints; ++p) {
        const float* points = input + p * input_size + first * tiles;
        MultiplyPoint(tiles, channels, points, weights + p * weight_size, sums + p * sum_size,
                      first != 0, points + input_size);
      }
    }
    StoreBlock(t, block * kWinogradChannels, sums, sum_size);
    FinishChannels(t, block * kWinogradChannels, (block + 1) * kWinogradChannels);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeWinograd);

namespace {

int64_t TileRows(const ConvGeometry& g) { return CeilDiv(g.out_h, kTile); }
int64_t TileColumns(const ConvGeometry& g) { return CeilDiv(g.out_w, kTile); }

// Tiles of a task: whole rows of tiles, or parts of one.
struct TileBlocks {
  int64_t rows, columns;  // of tiles in a block
  int64_t row_blocks, column_blocks;
};

TileBlocks CutTiles(const ConvGeometry& g) {
  constexpr int64_t kMostTiles = 64;
  const int64_t rows = TileRows(g), columns = TileColumns(g);
  TileBlocks b;
  b.column_blocks = CeilDiv(columns, kMostTiles);
  b.columns = CeilDiv(columns, b.column_blocks);
  b.row_blocks = CeilDiv(rows, std::max<int64_t>(kMostTiles / b.columns, 1));
  b.rows = CeilDiv(rows, b.row_blocks);
  return b;
}

}  // namespace

bool WinogradPays(const ConvGeometry& g) {
  if (g.kernel_h != 3 || g.kernel_w != 3 || g.stride_h != 1 || g.stride_w != 1 ||
      g.dilation_h != 1 || g.dilation_w != 1 || !g.dense_output() || g.positions() == 0) {
    return false;
  }
  // In multiply-adds of 16 lanes; the transforms' cost as measured (bench/math_bench.cc).
  constexpr double kWeights = 9, kInput = 27, kOutput = 19;
  const auto in = static_cast<double>(g.group_in);
  const auto out = static_cast<double>(RoundUp(g.group_out, kWinogradChannels));
  const auto tiles = static_cast<double>(TileRows(g) * TileColumns(g));
  const TileBlocks b = CutTiles(g);
  const auto blocks = static_cast<double>(b.row_blocks * b.column_blocks);
  const double direct = static_cast<double>(g.positions() * g.depth() * g.group_out) / 16;
  const double points = tiles * kPoints * in * out / 16 + blocks * in * out * kWeights +
                        tiles * in * kInput + tiles * out * kOutput;
  return points < direct;
}

AlignedArray<Half> PackWinograd(const ConvGeometry& g, HalfReader weights) {
  const int64_t padded = RoundUp(g.group_out, kWinogradChannels);
  AlignedArray<Half> packed(g.groups * padded * g.depth());
  std::vector<Half> row(g.depth());
  for (int64_t channel = 0; channel < g.groups * g.group_out; ++channel) {
    weights(channel * g.depth(), absl::MakeSpan(row));
    if (!std::all_of(row.begin(), row.end(), IsModest)) return {};
    const int64_t i = channel / g.group_out * padded + channel % g.group_out;
    const int64_t lane = i % kWinogradChannels;
    Half* to = packed.data() + (i - lane) * g.depth() + lane;
    for (int64_t k = 0; k < g.depth(); ++k) to[k * kWinogradChannels] = row[k];
  }
  return packed;
}

void RunWinograd(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const TileBlocks cut = CutTiles(g);
  const int64_t channel_blocks = CeilDiv(g.group_out, kWinogradChannels);
  const int64_t blocks = cut.row_blocks * cut.column_blocks;
  const int64_t copies = g.batch * g.groups;
  // Parts of the output channels each transform the input anew, so there are no more than needed.
  const int64_t threads = ThreadCount();
  int64_t parts = 1;
  while (parts < channel_blocks && copies * blocks * parts % threads != 0 &&
         copies * blocks * parts < 4 * threads) {
    ++parts;
  }
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task % parts;
      const int64_t block = task / parts % blocks;
      const int64_t copy = task / parts / blocks;  // image and group
      const int64_t group = copy % g.groups;
      WinogradTask t;
      t.geometry = &g;
      t.weights = state.winograd.data() + group * channel_blocks * kWinogradChannels * g.depth();
      t.bias = state.bias.data() + group * g.group_out;
      t.x = x + copy * g.group_in * g.in_h * g.in_w;
      t.y = y + copy * g.group_out * g.y_plane;
      t.epilogue = epilogue;
      t.tile_row = block / cut.column_blocks * cut.rows;
      t.tile_rows = std::min(cut.rows, TileRows(g) - t.tile_row);
      t.tile_column = block % cut.column_blocks * cut.columns;
      t.tile_columns = std::min(cut.columns, TileColumns(g) - t.tile_column);
      if (t.tile_rows <= 0 || t.tile_columns <= 0) continue;
      t.first_block = channel_blocks * part / parts;
      t.last_block = channel_blocks * (part + 1) / parts;
      HWY_DYNAMIC_DISPATCH(ComputeWinograd)(t);
    }
  };
  ParallelForItems(copies * blocks * parts, g.group_out * g.depth() * cut.rows * cut.columns, run);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
