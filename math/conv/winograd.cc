// 3x3, 1x3 and 1x5 convolutions with stride 1 by minimal filtering, F(4x4, 3x3), F(4, 3) and
// F(2, 5) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). A 3x3
// kernel's tile of 6 x 6 inputs is transformed to 36 points, each point is a product summed over
// the input channels, and the 36 sums are transformed to 4 x 4 outputs. This needs 36 products
// instead of 144. Tiles of the other kernels are rows: 6 points instead of 12 or 10 products.
//
// A task computes a block of tiles for its output channels:
//   points of the input    [point][channel][tile]            once
//   points of the weights  [point][channel of a step][32]    per 32 output channels and step
//   sums                   [point][tile][32]                 over the steps, then rounded
// All except the points of the input fit the second-level cache.
//
// Sums are fp32, but points are not exact, so the error is about 1e-6 of the largest value of the
// tile. That is far below the rounding of a result, unless the result is much smaller than its
// neighbors. A row of tiles with values near the end of fp16's range, or with infinities (which
// would spread over their tile), is computed directly.
#include <algorithm>
#include <cstdint>

#include "math/conv/conv_state.h"
#include "math/core/aligned_array.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/winograd.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/conv/winograd-inl.h"
#include "math/conv/winograd_direct-inl.h"
#include "math/conv/winograd_input-inl.h"
#include "math/core/interleave-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Positions of a row that are stored at once: those of two tiles, or of four of two outputs. As
// many channels are transposed at once.
constexpr int64_t kSquare = 8;

// Stores a row of `width` positions for the first `channels` of kSquare channels, transposed from
// from[position][channel].
HWY_INLINE void StoreRow(const Half* from, int64_t from_step, int64_t channels, int64_t width,
                         Half* to, int64_t plane) {
  if (channels == kSquare && width == kSquare) return TransposeHalves(from, from_step, to, plane);
  HWY_ALIGN Half turned[kSquare][kSquare];
  TransposeHalves(from, from_step, turned[0], kSquare);
  const hn::CappedTag<uint16_t, kSquare> d;
  for (int64_t k = 0; k < channels; ++k) {
    for (int64_t j = 0; j < width; j += hn::MaxLanes(d)) {
      const auto bits = hn::Load(d, reinterpret_cast<const uint16_t*>(turned[k] + j));
      StoreFirstBits(d, bits, to + k * plane + j, HWY_MIN(width - j, hn::MaxLanes(d)));
    }
  }
}

template <class F>
HWY_INLINE void StoreBlock(const WinogradTask& t, int64_t channel, int64_t channels,
                           const float* sums, int64_t point_size) {
  constexpr int64_t kWidth = HWY_MAX(kLanes, kSquare);  // channels processed together
  const ConvGeometry& g = *t.geometry;
  const int64_t width = TileColumns(g);
  HWY_ALIGN Half rounded[F::kHigh][kSquare][kWidth] = {};
  for (int64_t k = 0; k < channels; k += kWidth) {
    for (int64_t tile = 0; tile < t.tiles;) {
      const int64_t down = (t.first_tile + tile) / width, across = (t.first_tile + tile) % width;
      const int64_t count = HWY_MIN(HWY_MIN(width - across, t.tiles - tile), kSquare / F::kWide);
      for (int64_t lane = 0; lane < kWidth && k + lane < channels; lane += kLanes) {
        const VF bias = LoadFloatUpTo(t.bias + channel + k + lane, channels - k - lane);
        for (int64_t i = 0; i < count; ++i) {
          RoundTile<F>(sums + (tile + i) * kWinogradChannels + k + lane, point_size, bias,
                       t.epilogue.limits(), &rounded[0][i * F::kWide][lane], kSquare * kWidth,
                       kWidth);
        }
      }
      const int64_t row = down * F::kHigh, column = across * F::kWide;
      const int64_t rows = HWY_MIN(F::kHigh, g.out_h - row);
      const int64_t columns = HWY_MIN(count * F::kWide, g.out_w - column);
      for (int64_t lane = 0; lane < kWidth && k + lane < channels; lane += kSquare) {
        Half* to = t.y + (channel + k + lane) * g.y_plane + row * g.y_row + column;
        for (int64_t i = 0; i < rows; ++i, to += g.y_row) {
          StoreRow(&rounded[i][0][lane], kWidth, HWY_MIN(channels - k - lane, kSquare), columns, to,
                   g.y_plane);
        }
      }
      tile += count;
    }
  }
}

// Applies the rest of the epilogue, after its clamp, to some channels: whole rows at once, parts of
// rows one by one.
HWY_INLINE void FinishChannels(const WinogradTask& t, int64_t first, int64_t channels) {
  const ConvGeometry& g = *t.geometry;
  const Epilogue rest = t.epilogue.rest();
  if (rest.is_empty()) return;
  ForAreas(t, [&](const OutputArea& area) HWY_ATTR {
    Half* to = t.y + first * g.y_plane + area.row * g.y_row + area.column;
    const int64_t rows = area.columns == g.out_w ? area.rows : 1;
    for (int64_t i = 0; i < area.rows; i += rows, to += g.y_row) {
      rest.FinishRuns(to, channels, rows * area.columns, g.y_plane);
    }
  });
}

// Whether all magnitudes in the input rows that rows [first, last) of tiles read are below 2^14.
bool InputIsModest(const WinogradTask& t, int64_t first, int64_t last) {
  const ConvGeometry& g = *t.geometry;
  const int64_t high = TileSize(g.kernel_h);
  const int64_t top = HWY_MAX(first * high - g.pad_top, 0);
  const int64_t bottom = HWY_MIN(last * high + g.kernel_h - 1 - g.pad_top, g.in_h);
  for (int64_t c = 0; c < g.group_in && top < bottom; ++c) {
    if (!AreModest(t.x + (c * g.in_h + top) * g.in_w, (bottom - top) * g.in_w)) return false;
  }
  return true;
}

// Computes a task whose inputs are modest.
template <class F>
void ComputeTiles(const WinogradTask& t) {
  constexpr int64_t kPoints = F::kPoints, kTaps = F::kTaps;
  const ConvGeometry& g = *t.geometry;
  const int64_t tiles = t.tiles;
  const int64_t step = HWY_MIN(kStepChannels, g.group_in);
  const int64_t input_size = g.group_in * tiles + kApart;
  const int64_t weight_size = step * kWinogradChannels + kApart;
  const int64_t sum_size = tiles * kWinogradChannels + kApart;
  // One block of memory, so that huge pages waste little.
  float* weights = ThreadScratch<float>(ScratchUse::kPanelB,
                                        kPoints * (weight_size + sum_size + input_size) + kLanes);
  float* sums = weights + kPoints * weight_size;
  float* input = sums + kPoints * sum_size;
  const auto weights_of = [&](int64_t channel) {
    return t.weights + channel / kWinogradChannels * kWinogradChannels * g.depth();
  };
  TransformInput<F>(t, input_size, input, weights_of(t.first_channel));
  for (int64_t channel = t.first_channel, outputs = 0; channel < t.last_channel;
       channel += outputs) {
    const int64_t lane = channel % kWinogradChannels;
    outputs = HWY_MIN(kWinogradChannels - lane, t.last_channel - channel);
    const int64_t whole_parts = RoundUp(outputs, kPartChannels);
    const Half* from = weights_of(channel) + lane;
    for (int64_t first = 0; first < g.group_in; first += step) {
      const int64_t channels = HWY_MIN(step, g.group_in - first);
      TransformWeights<F>(from + first * kTaps * kWinogradChannels, channels, whole_parts,
                          weight_size, weights);
      const Half* next_weights = from + (first + channels) * kTaps * kWinogradChannels;
      for (int64_t p = 0; p < kPoints; ++p) {
        const float* points = input + p * input_size + first * tiles;
        // One cache line is prefetched per channel: of the input of the next point, or, at
        // every fourth point of 36, of a tap of the weights of the next step (and, if there are
        // many tiles, of the data after it).
        constexpr int64_t kEach = kPoints / kTaps;
        const void* next = points + input_size;
        if (p % kEach == 0) next = next_weights + p / kEach * channels * kWinogradChannels;
        MultiplyRows(tiles, channels, whole_parts, points, weights + p * weight_size,
                     sums + p * sum_size, first != 0, next);
      }
    }
    StoreBlock<F>(t, channel, outputs, sums, sum_size);
    FinishChannels(t, channel, outputs);
  }
}

// Computes a task. If some inputs are too large, decides for each row of tiles, so that results do
// not depend on the division into tasks. Rows with the same answer are computed together.
template <class F>
void ComputeTask(const WinogradTask& task) {
  const int64_t width = TileColumns(*task.geometry), end = task.first_tile + task.tiles;
  const int64_t last_row = CeilDiv(end, width);
  int64_t row = task.first_tile / width;
  if (InputIsModest(task, row, last_row)) return ComputeTiles<F>(task);
  WinogradTask part = task;
  for (bool modest = InputIsModest(task, row, row + 1); part.first_tile < end;
       part.first_tile += part.tiles) {
    const bool is_modest = modest;
    while (++row < last_row && (modest = InputIsModest(task, row, row + 1)) == is_modest) {
    }
    part.tiles = HWY_MIN(row * width, end) - part.first_tile;
    if (is_modest) {
      ComputeTiles<F>(part);
    } else {
      ComputeDirectly<F>(part);
      FinishChannels(part, part.first_channel, part.last_channel - part.first_channel);
    }
  }
}

void ComputeWinograd(const WinogradTask& task) {
  const ConvGeometry& g = *task.geometry;
  if (g.kernel_h == 3) return ComputeTask<Filter<3, 3>>(task);
  g.kernel_w == 3 ? ComputeTask<Filter<1, 3>>(task) : ComputeTask<Filter<1, 5>>(task);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeWinograd);

namespace {

int64_t Tiles(const ConvGeometry& g) { return TileRows(g) * TileColumns(g); }
int64_t Points(const ConvGeometry& g) { return g.kernel_h == 1 ? kReach : kReach * kReach; }
int64_t ChannelParts(const ConvGeometry& g) { return CeilDiv(g.group_out, kPartChannels); }

// The division of one group of one image into tasks: of the tiles into runs, and of the output
// channels. Parts differ in size by at most one.
struct TileCut {
  int64_t runs, channels;

  int64_t tasks() const { return runs * channels; }
  // The cost of the largest task in multiply-adds of 16 lanes. The costs of the transforms were
  // measured (bench/math_bench.cc). Products come before divisions: to round down made Winograd's
  // products look too cheap for short rows.
  int64_t largest_cost(const ConvGeometry& g) const {
    constexpr int64_t kWeights = 9, kInput = 45, kOutput = 18;  // for 36 points
    const int64_t tiles = CeilDiv(Tiles(g), runs), points = Points(g);
    const int64_t outputs = CeilDiv(ChannelParts(g), channels) * kPartChannels;
    return g.group_in * outputs * points * (tiles * 36 + kWeights * 16) / (16 * 36) +
           tiles * (g.group_in * kInput + outputs * kOutput) * points / 36;
  }
};

// The division into as few tasks as the second-level cache allows. Long rows of tiles are divided
// alike, because a task that reads the ends of two rows transforms more.
TileCut LeastCut(const ConvGeometry& g) {
  const int64_t most = 64 * 36 / Points(g);
  const int64_t per_row = CeilDiv(TileColumns(g), most);
  return {per_row > 1 ? TileRows(g) * per_row : CeilDiv(Tiles(g), most), 1};
}

// The same, or more tasks if that is faster with `threads` threads. Dividing tiles repeats the
// transform of the weights in each part, dividing channels that of the input.
TileCut ChooseCut(const ConvGeometry& g, int64_t threads) {
  TileCut best = LeastCut(g);
  if (threads == 1) return best;
  // Where a plane is divided, two cores read and write the same cache lines, in each channel.
  constexpr int64_t kShared = 100;
  const auto time = [&](const TileCut& cut) {
    const int64_t shared = cut.runs > 1 ? (g.group_in + g.group_out / cut.channels) * kShared : 0;
    return CeilDiv(g.batch * g.groups * cut.tasks(), threads) * (cut.largest_cost(g) + shared);
  };
  const int64_t most = 2 * threads;
  const int64_t most_runs = std::min(std::max(most, RoundUp(best.runs, threads)), Tiles(g));
  const int64_t most_channels = std::min(most, ChannelParts(g));
  for (int64_t runs = best.runs; runs <= most_runs; ++runs) {
    for (int64_t channels = 1; channels <= most_channels; ++channels) {
      const TileCut cut{runs, channels};
      if (time(cut) < time(best)) best = cut;
    }
  }
  return best;
}

}  // namespace

bool WinogradPays(const ConvGeometry& g) {
  const bool has_filter = (g.kernel_h == 3 && g.kernel_w == 3) ||
                          (g.kernel_h == 1 && (g.kernel_w == 3 || g.kernel_w == 5));
  const bool in_steps = g.stride_h == 1 && g.stride_w == 1 &&
                        (g.kernel_h == 1 || g.dilation_h == 1) && g.dilation_w == 1;
  if (!has_filter || !in_steps || !g.dense_output() || g.positions() == 0) {
    return false;
  }
  const TileCut cut = LeastCut(g);
  const int64_t direct = g.positions() * g.depth() * g.group_out / 16;
  return cut.tasks() * cut.largest_cost(g) < direct;
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
  const TileCut cut = ChooseCut(g, ThreadCount());
  const int64_t copies = g.batch * g.groups;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t copy = task / cut.tasks();  // image and group
      const int64_t group = copy % g.groups;
      const Part channels(g.group_out, kPartChannels, task % cut.channels, cut.channels);
      const Part tiles(Tiles(g), 1, task / cut.channels % cut.runs, cut.runs);
      WinogradTask t;
      t.geometry = &g;
      t.weights = state.weights->winograd.data() +
                  group * RoundUp(g.group_out, kWinogradChannels) * g.depth();
      t.bias = state.bias.data() + group * g.group_out;
      t.x = x + copy * g.group_in * g.in_h * g.in_w;
      t.y = y + copy * g.group_out * g.y_plane;
      t.epilogue = epilogue;
      t.first_tile = tiles.first;
      t.tiles = tiles.size();
      t.first_channel = channels.first;
      t.last_channel = channels.last;
      HWY_DYNAMIC_DISPATCH(ComputeWinograd)(t);
    }
  };
  ParallelForItems(copies * cut.tasks(), cut.largest_cost(g), run);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
