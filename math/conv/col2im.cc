// Transposed convolutions of small planes whose outputs overlap: a product of every tap with every
// input, then the sum of the products that meet at an output. A convolution for each phase would
// unfold short rows, and multiply the padding around them.
#include "math/conv/col2im.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/col2im.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"
#include "math/gemm/kernel-inl.h"
#include "math/gemm/weight_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The products of the rows of one task, `step` apart: a row is [out channel][tap], a column is an
// input position.
HWY_INLINE void MultiplyTaps(const PackedConv::State& state, int64_t first_panel, int64_t rows,
                             const Half* x, int64_t step, float* products) {
  const ConvGeometry& g = state.geometry;
  const int64_t depth = g.depth(), positions = g.positions();
  const int64_t tiles = CeilDiv(positions, 3 * kLanes) + 1;  // TileWidth() may divide the last
  float* const b = ThreadScratch<float>(ScratchUse::kPanelB, tiles * kPanelColumns * depth);
  float* panel = b;
  for (int64_t j = 0, width = 0; j < positions; j += width, panel += depth * kPanelColumns) {
    width = TileWidth(positions - j);
    for (int64_t c = 0; c < depth; ++c) {
      WidenRun(x + c * positions + j, panel + c * kPanelColumns, width);
    }
  }
  float* const a = ThreadScratch<float>(ScratchUse::kPanelA, kTileRows * depth);
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t height = HWY_MIN(rows - i, kTileRows);
    for (int64_t r = 0; r < height; r += kPanelRows) {
      FillPanel(state.weights->panels, first_panel + (i + r) / kPanelRows, 0, depth, a + r * depth);
    }
    panel = b;
    for (int64_t j = 0, width = 0; j < positions; j += width, panel += depth * kPanelColumns) {
      width = TileWidth(positions - j);
      MultiplyTile(depth, a, depth * kPanelRows, height, panel, width, nullptr,
                   FloatTile{products + i * step + j, step}, Ahead());
    }
  }
}

// The same for at most kTileRows positions, which would leave most of a vector empty: vectors are
// along the rows.
HWY_INLINE void MultiplyFewPositions(const PackedConv::State& state, int64_t first_panel,
                                     int64_t rows, const Half* x, int64_t step, float* products) {
  const ConvGeometry& g = state.geometry;
  const int64_t depth = g.depth(), positions = g.positions();
  float* const a = ThreadScratch<float>(ScratchUse::kPanelA, kTileRows * depth);
  for (int64_t p = 0; p < positions; ++p) {
    float* to = a + p / kPanelRows * kPanelRows * depth + p % kPanelRows;
    for (int64_t c = 0; c < depth; ++c) to[c * kPanelRows] = ToFloat(x[c * positions + p]);
  }
  float* const tile = ThreadScratch<float>(ScratchUse::kPanelB, kTileSize);
  const Half* panel = state.weights->panels.halves.data() + first_panel * depth * kPanelColumns;
  for (int64_t i = 0; i < rows; i += kPanelColumns, panel += depth * kPanelColumns) {
    MultiplyTile(depth, a, depth * kPanelRows, positions, panel, kPanelColumns, nullptr,
                 FloatTile{tile}, Ahead());
    const int64_t count = HWY_MIN(rows - i, kPanelColumns);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t p = 0; p < positions; ++p) {
        products[(i + r) * step + p] = tile[p * kPanelColumns + r];
      }
    }
  }
}

// The columns of one phase, in rows `row_step` apart: the sums of the products that meet there, and
// the bias.
HWY_INLINE void SumPhase(const PackedConvTranspose& op, const PhaseAxis& columns,
                         const float* products, int64_t step, float bias, Half* to,
                         int64_t row_step) {
  const DF df;
  const ConvTransposeShape& shape = op.shape;
  const auto taps = static_cast<int64_t>(columns.taps.size());
  const auto phases = static_cast<int64_t>(op.row_phases.size());
  for (int64_t j = 0; j < columns.size; j += kLanes) {
    // The product of a tap that output j reads, and the lanes in which it is inside of a row.
    int64_t at[kMostLanes];
    hn::Mask<DF> inside[kMostLanes];
    for (int64_t w = 0; w < taps; ++w) {
      const int64_t first = j - columns.pad + w * columns.dilation;
      const auto lanes_until = [&](int64_t end) HWY_ATTR {
        return hn::FirstN(df, static_cast<size_t>(std::clamp<int64_t>(end - first, 0, kLanes)));
      };
      at[w] = columns.taps[w] * step + first;
      inside[w] = hn::AndNot(lanes_until(0), lanes_until(shape.in_w));
    }
    const int64_t count = HWY_MIN(columns.size - j, kLanes);
    for (int64_t i = 0; i < shape.out_h(); ++i) {
      const PhaseAxis& rows = op.row_phases[i % phases];
      VF sum = hn::Zero(df);
      for (size_t h = 0; h < rows.taps.size(); ++h) {
        const int64_t row = i / phases - rows.pad + static_cast<int64_t>(h) * rows.dilation;
        if (row < 0 || row >= shape.in_h) continue;
        const float* const from =
            products + rows.taps[h] * shape.window.kernel_w * step + row * shape.in_w;
        for (int64_t w = 0; w < taps; ++w) {
          sum = hn::Add(sum, hn::IfThenElseZero(inside[w], hn::LoadU(df, from + at[w])));
        }
      }
      StoreHalfN(hn::Add(sum, hn::Set(df, bias)), to + i * row_step + j, count);
    }
  }
}

// One output plane.
HWY_INLINE void SumPlane(const PackedConvTranspose& op, const float* products, int64_t step,
                         float bias, Half* y) {
  const int64_t out_h = op.shape.out_h(), out_w = op.shape.out_w();
  const auto phases = static_cast<int64_t>(op.column_phases.size());
  if (phases == 1) return SumPhase(op, op.column_phases[0], products, step, bias, y, out_w);
  const int64_t whole = out_w / phases, pitch = whole + 1;
  Half* const sums = ThreadScratch<Half>(ScratchUse::kRow, out_h * phases * pitch);
  for (int64_t w = 0; w < phases; ++w) {
    SumPhase(op, op.column_phases[w], products, step, bias, sums + w * pitch, phases * pitch);
  }
  for (int64_t i = 0; i < out_h; ++i, y += out_w) {
    const Half* const row = sums + i * phases * pitch;
    InterleaveRuns(row, pitch, phases, whole, y);
    for (int64_t j = whole * phases; j < out_w; ++j) y[j] = row[j % phases * pitch + whole];
  }
}

// Channels [channel, channel + channels) of a group of one image; `y` is at the first of them.
void ComputeCol2im(const PackedConvTranspose& op, int64_t group, int64_t channel, int64_t channels,
                   const Half* x, Half* y, const Epilogue& epilogue) {
  const PackedConv::State& state = op.convs[0].state();
  const ConvGeometry& g = state.geometry;
  const int64_t taps = op.shape.window.kernel_h * op.shape.window.kernel_w;
  const int64_t plane = op.shape.out_h() * op.shape.out_w();
  const int64_t step = RoundUp(g.positions(), kMostLanes);
  const int64_t rows = channels * taps;
  // SumPhase() reads lanes before the first row and after the last.
  constexpr int64_t kMargin = 4 * kMostLanes;
  float* const products =
      ThreadScratch<float>(ScratchUse::kTile, RoundUp(rows, kTileRows) * step + 2 * kMargin) +
      kMargin;
  const int64_t width = state.weights->panels.width;
  const int64_t panel = group * CeilDiv(g.group_out, width) + channel * taps / width;
  const auto multiply = width == kPanelRows ? MultiplyTaps : MultiplyFewPositions;
  multiply(state, panel, rows, x, step, products);
  const float* const bias = state.bias.data() + group * g.group_out / taps + channel;
  for (int64_t c = 0; c < channels; ++c) {
    SumPlane(op, products + c * taps * step, step, bias[c], y + c * plane);
  }
  epilogue.FinishRuns(y, channels, plane, plane);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeCol2im);

namespace {

// The most products of a task. They stay in the second-level cache.
constexpr int64_t kMostProducts = 1 << 15;

// The rows of a panel of weights: those of a tile, or, with few positions, those of vectors.
int64_t PanelWidth(const ConvTransposeShape& shape) {
  return shape.in_h * shape.in_w > kTileRows ? kPanelRows : kPanelColumns;
}

// A task begins with a panel of weights.
int64_t ChannelStep(const ConvTransposeShape& shape) {
  const int64_t width = PanelWidth(shape);
  return width / std::gcd(shape.window.kernel_h * shape.window.kernel_w, width);
}

}  // namespace

bool Col2imPays(const ConvTransposeShape& shape) {
  const Window& w = shape.window;
  const int64_t taps = w.kernel_h * w.kernel_w, positions = shape.in_h * shape.in_w;
  const int64_t group_in = shape.in_channels / shape.groups;
  const int64_t group_out = shape.out_channels / shape.groups;
  constexpr int64_t kLeastDepth = 8, kMostPositions = 1024, kMostColumns = 64;
  // Long rows are unfolded fast, and their padding is a small part.
  if (positions > kMostPositions || shape.in_w > kMostColumns) return false;
  if (group_in < kLeastDepth || group_in > kBlockDepth) return false;
  // SumPhase() reads that far beyond a row.
  if (std::max(w.dilation_w * (w.kernel_w - 1), shape.output_padding_w) >= kMostLanes) return false;
  if (w.stride_w > kMostLanes) return false;
  const int64_t channels = std::min(group_out, ChannelStep(shape));
  return channels * taps * RoundUp(positions, kMostLanes) <= kMostProducts;
}

PackedConv PackCol2im(const ConvTransposeShape& shape, absl::Span<const Half> by_taps,
                      absl::Span<const float> bias, ConstantId id) {
  const int64_t taps = shape.window.kernel_h * shape.window.kernel_w;
  const int64_t width = PanelWidth(shape);
  auto state = std::make_unique<PackedConv::State>();
  ConvGeometry& g = state->geometry;
  g.batch = shape.batch;
  g.groups = shape.groups;
  g.group_in = shape.in_channels / shape.groups;
  g.group_out = shape.out_channels / shape.groups * taps;
  g.in_h = g.out_h = shape.in_h;
  g.in_w = g.out_w = shape.in_w;
  state->bias.assign(bias.begin(), bias.end());
  state->bias.resize(shape.out_channels, 0.0f);
  const PackKey key = {id.Derived({taps}), {g.groups, g.group_in, g.group_out, width}};
  state->weights = SharedPack<ConvWeights>(key, [&] {
    const PanelLayout layout = {
        .width = width, .lines = g.group_out, .depth = g.depth(), .line_step = g.depth()};
    return ConvWeights{.panels = PackWeightPanels(layout, g.groups, ReaderOf(by_taps), nullptr)};
  });
  return PackedConv(std::move(state));
}

void RunCol2im(const PackedConvTranspose& op, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvTransposeShape& shape = op.shape;
  const int64_t taps = shape.window.kernel_h * shape.window.kernel_w;
  const int64_t group_in = shape.in_channels / shape.groups;
  const int64_t group_out = shape.out_channels / shape.groups;
  const int64_t positions = shape.in_h * shape.in_w, plane = shape.out_h() * shape.out_w();
  const int64_t copies = shape.batch * shape.groups, step = ChannelStep(shape);
  const int64_t products = group_out * taps * RoundUp(positions, kMostLanes);
  const int64_t parts = std::min(RoundUp(CeilDiv(products, kMostProducts), PartsForThreads(copies)),
                                 CeilDiv(group_out, step));
  const int64_t cost = group_out * taps * positions * group_in / parts / 16;
  ParallelForItems(copies * parts, cost, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t copy = task / parts, group = copy % shape.groups;
      const Part channels(group_out, step, task % parts, parts);
      HWY_DYNAMIC_DISPATCH(ComputeCol2im)
      (op, group, channels.first, channels.size(), x + copy * group_in * positions,
       y + (copy * group_out + channels.first) * plane, epilogue);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
