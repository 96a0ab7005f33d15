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
#include "engine/math/interleave-inl.h"
#include "engine/math/kernel-inl.h"
#include "engine/math/stage-inl.h"
#include "engine/math/weight_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Where the vectors of positions [position, position + count), all of one panel, come from: a row
// of positions is contiguous in the stage. Vectors are copied whole; what one writes too much the
// next overwrites, so they must be copied in this order.
template <class D>
HWY_INLINE int64_t FindCopies(const D d, const ConvGeometry& g, const Stage& s, int64_t position,
                              int64_t count, PanelCopy* copies) {
  int64_t found = 0;
  for (int64_t done = 0; done < count;) {
    const int64_t row = (position + done) / g.out_w;
    const int64_t column = (position + done) % g.out_w;
    const int64_t length = HWY_MIN(count - done, g.out_w - column);
    const int64_t source = s.RowOffset(row) + column - s.first_column;
    for (int64_t i = 0; i < length; i += hn::Lanes(d)) copies[found++] = {source + i, done + i};
    done += length;
  }
  return found;
}

// `channels` channels of the staged input, unfolded: panel[channel, tap][kWidth]. The first kKnown
// copies are unrolled.
template <int64_t kWidth, size_t kKnown, class D>
HWY_INLINE void UnfoldCopies(hwy::SizeTag<kKnown>, const D d, int64_t channels, const float* stage,
                             int64_t channel_size, const int64_t* taps, int64_t tap_count,
                             const PanelCopy* copies, int64_t copy_count, float* panel) {
  PanelCopy known[kKnown + 1];
  HWY_UNROLL(4)
  for (size_t i = 0; i < kKnown; ++i) known[i] = copies[i];
  for (int64_t c = 0; c < channels; ++c, stage += channel_size) {
    for (int64_t t = 0; t < tap_count; ++t, panel += kWidth) {
      const float* from = stage + taps[t];
      HWY_UNROLL(4)
      for (size_t i = 0; i < kKnown; ++i) {
        hn::StoreU(hn::LoadU(d, from + known[i].source), d, panel + known[i].target);
      }
      for (int64_t i = kKnown; i < copy_count; ++i) {
        hn::StoreU(hn::LoadU(d, from + copies[i].source), d, panel + copies[i].target);
      }
    }
  }
}

template <int64_t kWidth, class D>
HWY_INLINE void UnfoldPanel(const D d, int64_t channels, const float* stage, int64_t channel_size,
                            const int64_t* taps, int64_t tap_count, const PanelCopy* copies,
                            int64_t copy_count, float* panel) {
  const auto run = [&](auto known) HWY_ATTR {
    UnfoldCopies<kWidth>(known, d, channels, stage, channel_size, taps, tap_count, copies,
                         copy_count, panel);
  };
  if (copy_count == 1) return run(hwy::SizeTag<1>());
  if (copy_count == 3) return run(hwy::SizeTag<3>());
  if (copy_count == 4) return run(hwy::SizeTag<4>());
  run(hwy::SizeTag<0>());
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
  const DF df;
  // A few channels at a time, so that the stage stays near.
  constexpr int64_t kStageFloats = 16384;
  const int64_t step = HWY_MAX(HWY_MIN(kStageFloats / s.channel_size, channels), 1);
  float* stage = ThreadScratch<float>(ScratchUse::kStage, step * s.channel_size + kLanes);
  StageOutside(s, 0.0f, step, stage);
  PanelCopy* copies = ThreadScratch<PanelCopy>(ScratchUse::kCopies, kPanelColumns);
  const int64_t depth = channels * g.taps();
  for (int64_t c = 0; c < channels; c += step) {
    const int64_t now = HWY_MIN(channels - c, step);
    for (int64_t i = 0; i < now; ++i) {
      StageChannel(g, s, block.x + (first + c + i) * g.in_h * g.in_w, stage + i * s.channel_size);
    }
    for (int64_t j = 0; j < block.positions; j += kPanelColumns) {
      const int64_t width = HWY_MIN(block.positions - j, kPanelColumns);
      float* panel = b + j * depth;
      if (c == 0 && width < kPanelColumns) {
        std::memset(panel, 0, depth * kPanelColumns * sizeof(float));
      }
      const int64_t count = FindCopies(df, g, s, block.position + j, width, copies);
      // What the last row's last vector writes too much is the next panel's, whose first row is
      // written later only for the first channels.
      float* const next = panel + depth * kPanelColumns;
      const bool spoils_next = c > 0 && j + kPanelColumns < block.positions;
      const VF kept = spoils_next ? hn::LoadU(df, next) : hn::Zero(df);
      UnfoldPanel<kPanelColumns>(df, now, stage, s.channel_size, taps, g.taps(), copies, count,
                                 panel + c * g.taps() * kPanelColumns);
      if (spoils_next) hn::StoreU(kept, df, next);
    }
  }
}

// Rounds one tile into the output planes of its rows, which are no runs.
HWY_INLINE void StorePositions(const ConvBlock& block, const float* tile, int64_t row, int64_t rows,
                               int64_t position, int64_t positions) {
  const ConvGeometry& g = *block.geometry;
  for (int64_t i = 0; i < rows; ++i) {
    const float* sums = tile + i * kPanelColumns;
    const float bias = block.bias[row + i];
    Half* plane = block.y + (row + i) * g.y_plane;
    for (int64_t done = 0; done < positions;) {
      const int64_t out_row = (position + done) / g.out_w;
      const int64_t column = (position + done) % g.out_w;
      const int64_t length = HWY_MIN(positions - done, g.out_w - column);
      StoreSums(sums + done, nullptr, bias, length,
                plane + g.y_first + out_row * g.y_row + column * g.y_column, g.y_column);
      done += length;
    }
  }
}

// Channels multiplied in one pass.
HWY_INLINE int64_t ChannelStep(const ConvGeometry& g) {
  const int64_t most = HWY_MAX(kBlockDepth / HWY_MAX(g.taps(), 1), 1);
  return HWY_MAX(EvenPart(g.group_in, most), 1);
}

// Rows of the weights as float.
HWY_INLINE void PackWeights(const ConvBlock& block, int64_t row, int64_t rows, int64_t first,
                            int64_t depth, float* a) {
  for (int64_t i = 0; i < rows; i += kPanelRows) {
    FillPanel(*block.weights, block.first_panel + (row + i) / kPanelRows, first, depth,
              a + i * depth);
  }
}

// The weights of the tile of rows behind `row`, or of the next pass's first one, in two parts.
HWY_INLINE Ahead RowsAhead(const ConvBlock& block, int64_t first, int64_t terms, int64_t row,
                           int64_t panel) {
  if (block.weights->form != WeightForm::kDense) return {};
  row += kTileRows;
  if (row >= block.channels) {
    row = 0;
    first += terms;
  }
  const int64_t depth = block.geometry->depth();
  const int64_t halves = CeilDiv(CeilDiv(block.positions, kPanelColumns), 2);
  const int64_t part = panel / halves;
  if (first >= depth || row + part * kPanelRows >= block.channels) return {};
  const int64_t at = block.first_panel + (block.channel + row) / kPanelRows + part;
  return AheadOf(block.weights->halves.data() + (at * depth + first) * kPanelRows,
                 HWY_MIN(depth - first, terms) * kPanelRows, panel % halves, halves, terms);
}

// Output channels as rows, positions as columns.
HWY_INLINE void MultiplyConvBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const Stage stage = PlanStage(g, block.position, block.positions);
  const int64_t* taps = TapOffsets(g, stage);
  const Epilogue rest = block.epilogue.rest();
  MultiplyPanels(
      block.channels, block.positions, g.depth(), ChannelStep(g) * g.taps(),
      [&](int64_t first, int64_t depth, float* b) HWY_ATTR {
        if (depth == 0) return;
        if (g.pointwise()) return PackPointwise(block, first, depth, b);
        PackUnfolded(block, stage, taps, first / g.taps(), depth / g.taps(), b);
      },
      [&](int64_t row, int64_t rows, int64_t first, int64_t depth, float* a)
          HWY_ATTR { PackWeights(block, block.channel + row, rows, first, depth, a); },
      [&](int64_t row, int64_t rows, int64_t position, int64_t positions) HWY_ATTR {
        if (!g.dense_output()) return HalfTile();
        const int64_t channel = block.channel + row;
        return HalfTile{block.y + channel * g.y_plane + block.position + position,
                        g.y_plane,
                        block.bias + channel,
                        nullptr,
                        rows,
                        positions,
                        block.epilogue.limits()};
      },
      [&](const float* tile, int64_t row, int64_t rows, int64_t position, int64_t positions)
          HWY_ATTR {
            if (tile != nullptr) {
              StorePositions(block, tile, block.channel + row, rows, block.position + position,
                             positions);
            }
            if (position + positions < block.positions || !g.dense_output()) return;
            rest.FinishRuns(block.y + (block.channel + row) * g.y_plane + block.position, rows,
                            block.positions, g.y_plane);
          },
      [&](int64_t first, int64_t terms, int64_t row, int64_t column)
          HWY_ATTR { return RowsAhead(block, first, terms, row, column / kPanelColumns); });
}

// Rounds a tile whose rows are positions and whose columns are output channels.
HWY_INLINE void StoreChannels(const ConvBlock& block, const float* tile, int64_t position,
                              int64_t positions, int64_t channel, int64_t channels) {
  HWY_ALIGN Half rounded[kTileRows][kPanelColumns];
  for (int64_t i = 0; i < positions; ++i) {
    StoreSums(tile + i * kPanelColumns, block.bias + channel, 0.0f, channels, rounded[i], 1);
  }
  const int64_t plane = block.geometry->y_plane;
  Half* to = block.y + channel * plane + position;
  int64_t j = 0;
  for (; positions == kTileRows && j + 8 <= channels; j += 8, to += 8 * plane) {
    TransposeHalves(rounded[0] + j, kPanelColumns, to, plane);
  }
  for (; j < channels; ++j, to += plane) {
    for (int64_t i = 0; i < positions; ++i) to[i] = rounded[i][j];
  }
}

// Positions as rows, output channels as columns: vectors are full however few positions there are.
HWY_INLINE void MultiplyChannelBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const hn::CappedTag<float, kPanelRows> d;
  const Stage s = PlanStage(g, block.position, block.positions);
  const int64_t* taps = TapOffsets(g, s);
  const int64_t channel_step = ChannelStep(g);
  float* stage = ThreadScratch<float>(ScratchUse::kStage, channel_step * s.channel_size + kLanes);
  StageOutside(s, 0.0f, channel_step, stage);
  PanelCopy* copies = ThreadScratch<PanelCopy>(ScratchUse::kCopies, kPanelColumns);
  const WeightPanels& w = *block.weights;
  const auto multiply = [&](const auto& read_b) HWY_ATTR {
    MultiplyFewRows(
        block.positions, block.channels, g.depth(), channel_step * g.taps(),
        [&](int64_t first, int64_t depth, float* a) HWY_ATTR {
          const int64_t channels = depth / g.taps();
          for (int64_t c = 0; c < channels; ++c) {
            StageChannel(g, s, block.x + (first / g.taps() + c) * g.in_h * g.in_w,
                         stage + c * s.channel_size);
          }
          for (int64_t i = 0; i < block.positions; i += kPanelRows) {
            const int64_t width = HWY_MIN(block.positions - i, kPanelRows);
            float* panel = a + i * depth;
            if (width < kPanelRows) std::memset(panel, 0, depth * kPanelRows * sizeof(float));
            const int64_t count = FindCopies(d, g, s, block.position + i, width, copies);
            UnfoldPanel<kPanelRows>(d, channels, stage, s.channel_size, taps, g.taps(), copies,
                                    count, panel);
          }
        },
        read_b,
        [&](const float* tile, int64_t row, int64_t rows, int64_t column,
            int64_t columns) HWY_ATTR {
          StoreChannels(block, tile, block.position + row, rows, block.channel + column, columns);
        },
        [&](int64_t first, int64_t terms, int64_t row, int64_t column) HWY_ATTR {
          column += kPanelColumns;
          if (w.form != WeightForm::kDense || column >= block.channels) return Ahead();
          const int64_t at = (block.channel + column) * g.depth() + first * kPanelColumns;
          return AheadOf(w.halves.data() + at, terms * kPanelColumns, row / kTileRows,
                         CeilDiv(block.positions, kTileRows), terms);
        });
  };
  if (ANEMONE_MATH_NATIVE_HALF && w.form == WeightForm::kDense) {
    multiply([&](int64_t column, int64_t first, int64_t, float*) HWY_ATTR {
      return w.halves.data() + (block.channel + column) * g.depth() + first * kPanelColumns;
    });
  } else {
    multiply([&](int64_t column, int64_t first, int64_t depth, float* b) HWY_ATTR {
      FillPanel(w, (block.channel + column) / kPanelColumns, first, depth, b);
      return b;
    });
  }
  block.epilogue.FinishRuns(block.y + block.channel * g.y_plane + block.position, block.channels,
                            block.positions, g.y_plane);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
