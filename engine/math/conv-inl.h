// engine/math/conv-inl.h: one block of a convolution as a matrix product. Internal.
//
// Rows are output channels, columns output positions, depth runs over (channel, tap). The unfolded
// input (im2col) never exists as a whole: a block of it, at most about 384 deep and 192 wide, is
// copied from a Stage into panels just before it is multiplied.
#if defined(ENGINE_MATH_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_CONV_INL_H_
#undef ENGINE_MATH_CONV_INL_H_
#else
#define ENGINE_MATH_CONV_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "engine/math/conv_state.h"
#include "engine/math/kernel-inl.h"
#include "engine/math/stage-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The segments of positions [position, position + count), all of one panel.
HWY_INLINE int64_t FindSegments(const ConvGeometry& g, const Stage& s, int64_t position,
                                int64_t count, Segment* segments) {
  int64_t found = 0;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (position + done) / g.out_w;
    const int64_t column = (position + done) % g.out_w;
    const int64_t length = HWY_MIN(count - done, g.out_w - column);
    segments[found++] = {(row - s.first_row) * g.stride_h * s.row_size + column - s.first_column,
                         done, length};
    done += length;
  }
  return found;
}

// Channels [first, first + channels) of the staged input, unfolded: panel[depth][48]. Vectors are
// stored whole; what one writes too much the next one overwrites, last of all in the panel's slack.
HWY_INLINE void UnfoldPanel(int64_t channels, const float* stage, int64_t channel_size,
                            const int64_t* taps, int64_t tap_count, const Segment* segments,
                            int64_t segment_count, float* panel) {
  const DF df;
  for (int64_t c = 0; c < channels; ++c, stage += channel_size) {
    for (int64_t t = 0; t < tap_count; ++t, panel += kPanelColumns) {
      for (int64_t i = 0; i < segment_count; ++i) {
        const float* from = stage + taps[t] + segments[i].source;
        float* to = panel + segments[i].target;
        for (int64_t j = 0; j < segments[i].length; j += kLanes) {
          hn::StoreU(hn::LoadU(df, from + j), df, to + j);
        }
      }
    }
  }
}

// B of a block for channels [first, first + channels), from the input itself when each position
// reads just its own.
HWY_INLINE void PackPointwise(const ConvBlock& block, int64_t first, int64_t channels, float* b) {
  const int64_t plane = block.geometry->in_h * block.geometry->in_w;
  for (int64_t j = 0; j < block.positions; j += kPanelColumns) {
    const int64_t width = HWY_MIN(block.positions - j, kPanelColumns);
    const Half* from = block.x + first * plane + block.position + j;
    float* to = b + j * channels;
    for (int64_t c = 0; c < channels; ++c, from += plane, to += kPanelColumns) {
      WidenRun(from, to, width);
      for (int64_t i = width; i < kPanelColumns; ++i) to[i] = 0.0f;
    }
  }
}

HWY_INLINE void PackUnfolded(const ConvBlock& block, const Stage& s, const int64_t* taps,
                             int64_t first, int64_t channels, float* b) {
  const ConvGeometry& g = *block.geometry;
  float* stage = ThreadScratch<float>(ScratchUse::kStage, channels * s.channel_size + kLanes);
  for (int64_t c = 0; c < channels; ++c) {
    StageChannel(g, s, 0.0f, block.x + (first + c) * g.in_h * g.in_w, stage + c * s.channel_size);
  }
  const int64_t depth = channels * g.taps();
  Segment* segments = ThreadScratch<Segment>(ScratchUse::kSegments, kPanelColumns);
  for (int64_t j = 0; j < block.positions; j += kPanelColumns) {
    const int64_t width = HWY_MIN(block.positions - j, kPanelColumns);
    float* panel = b + j * depth;
    if (width < kPanelColumns) std::memset(panel, 0, depth * kPanelColumns * sizeof(float));
    const int64_t count = FindSegments(g, s, block.position + j, width, segments);
    UnfoldPanel(channels, stage, s.channel_size, taps, g.taps(), segments, count, panel);
  }
}

// Rounds one tile into the output planes of its rows.
HWY_INLINE void StorePositions(const ConvBlock& block, const float* tile, int64_t row,
                               int64_t rows, int64_t position, int64_t positions) {
  const ConvGeometry& g = *block.geometry;
  for (int64_t i = 0; i < rows; ++i) {
    const float* sums = tile + i * kPanelColumns;
    const float bias = block.bias[row + i];
    Half* plane = block.y + (row + i) * g.y_plane;
    if (g.dense_output()) {
      StoreSums(sums, nullptr, bias, block.epilogue, positions, plane + position, 1);
      continue;
    }
    for (int64_t done = 0; done < positions;) {
      const int64_t out_row = (position + done) / g.out_w;
      const int64_t column = (position + done) % g.out_w;
      const int64_t length = HWY_MIN(positions - done, g.out_w - column);
      StoreSums(sums + done, nullptr, bias, block.epilogue, length,
                plane + g.y_first + out_row * g.y_row + column * g.y_column, g.y_column);
      done += length;
    }
  }
}

// Channels unfolded at once.
HWY_INLINE int64_t ChannelStep(const ConvGeometry& g) {
  return HWY_MAX(HWY_MIN(g.group_in, kBlockDepth / HWY_MAX(g.taps(), 1)), 1);
}

// Rows of the weights as float.
HWY_INLINE void PackWeights(const ConvBlock& block, int64_t row, int64_t rows, int64_t first,
                            int64_t depth, float* a) {
  const int64_t whole_depth = block.geometry->depth();
  for (int64_t i = 0; i < rows; i += kPanelRows) {
    WidenRun(block.weights + (row + i) * whole_depth + first * kPanelRows, a + i * depth,
             depth * kPanelRows);
  }
}

HWY_INLINE void MultiplyConvBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const Stage stage = PlanStage(g, block.position, block.positions);
  int64_t* taps = ThreadScratch<int64_t>(ScratchUse::kTaps, g.taps());
  for (int64_t t = 0; t < g.taps(); ++t) {
    taps[t] = stage.TapOffset(g, t / g.kernel_w, t % g.kernel_w);
  }
  MultiplyPanels(
      block.rows, block.positions, g.depth(), ChannelStep(g) * g.taps(),
      [&](int64_t first, int64_t depth, float* b) HWY_ATTR {
        if (depth == 0) return;
        if (g.pointwise()) return PackPointwise(block, first, depth, b);
        PackUnfolded(block, stage, taps, first / g.taps(), depth / g.taps(), b);
      },
      [&](int64_t row, int64_t rows, int64_t first, int64_t depth, float* a)
          HWY_ATTR { PackWeights(block, block.row + row, rows, first, depth, a); },
      [&](const float* tile, int64_t row, int64_t rows, int64_t position, int64_t positions)
          HWY_ATTR {
            StorePositions(block, tile, block.row + row, rows, block.position + position,
                           positions);
          });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
