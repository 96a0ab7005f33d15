// math/conv/conv-inl.h: one block of a convolution as a matrix product. Internal.
//
// Rows of the product are output channels, columns are output positions, and depth is (channel,
// tap). The unfolded input (im2col) is never stored as a whole: a block of it is copied from a
// Stage into panels immediately before it is multiplied, or read from the stage or the input in
// place.
#if defined(ANEMONE_MATH_CONV_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CONV_CONV_INL_H_
#undef ANEMONE_MATH_CONV_CONV_INL_H_
#else
#define ANEMONE_MATH_CONV_CONV_INL_H_
#endif

#include <cstdint>

#include "math/conv/conv_state.h"
#include "math/conv/stage-inl.h"
#include "math/core/interleave-inl.h"
#include "math/core/scratch.h"
#include "math/gemm/kernel-inl.h"
#include "math/gemm/weight_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// A vector of consecutive positions is loaded from the stage in pieces, one for each row of
// positions that it covers. Lanes from `lane` to the next piece's `lane` hold the elements of a
// staged channel from `source` + `lane` on, for tap (0, 0). The first piece of a vector has lane 0.
struct PositionPiece {
  int64_t source, lane;
};

// The pieces of all vectors of a block, followed by an end mark with lane 0. In thread scratch.
HWY_INLINE const PositionPiece* FindPieces(const ConvBlock& block, const Stage& s) {
  const int64_t width = block.geometry->out_w;
  auto* const pieces = ThreadScratch<PositionPiece>(ScratchUse::kPieces, block.positions + 1);
  PositionPiece* next = pieces;
  int64_t row = block.position / width, column = block.position % width;
  for (int64_t i = 0; i < block.positions;) {
    const int64_t lane = i % kLanes;
    *next++ = {s.RowOffset(row) + column - s.first_column - lane, lane};
    const int64_t count = HWY_MIN(kLanes - lane, width - column);
    i += count;
    column += count;
    if (column == width) column = 0, ++row;
  }
  *next = {0, 0};
  return pieces;
}

// Calls store(term, vector) for each term (channel, tap) of `channels` staged channels. The vector
// has `count` pieces, of which the first kKnown are unrolled. Lanes after the last position have
// undefined values.
template <size_t kKnown, class Store>
HWY_INLINE void UnfoldPieces(hwy::SizeTag<kKnown>, const PositionPiece* pieces, int64_t count,
                             int64_t channels, const float* stage, int64_t channel_size,
                             const int64_t* taps, int64_t tap_count, const Store& store) {
  const DF df;
  const auto lanes_before = [&](int64_t piece) HWY_ATTR {
    return hn::FirstN(df, static_cast<size_t>(pieces[piece].lane));
  };
  int64_t sources[kKnown];
  hn::Mask<DF> before[kKnown];
  for (size_t i = 0; i < kKnown; ++i) sources[i] = pieces[i].source, before[i] = lanes_before(i);
  int64_t term = 0;
  for (int64_t c = 0; c < channels; ++c, stage += channel_size) {
    for (int64_t t = 0; t < tap_count; ++t, ++term) {
      const float* from = stage + taps[t];
      VF vector = hn::LoadU(df, from + sources[0]);
      HWY_UNROLL(4)
      for (size_t i = 1; i < kKnown; ++i) {
        vector = hn::IfThenElse(before[i], vector, hn::LoadU(df, from + sources[i]));
      }
      for (int64_t i = kKnown; i < count; ++i) {
        vector = hn::IfThenElse(lanes_before(i), vector, hn::LoadU(df, from + pieces[i].source));
      }
      store(term, vector);
    }
  }
}

// The same for the vector that begins at `pieces`. Returns the pieces of the next vector.
template <class Store>
HWY_INLINE const PositionPiece* UnfoldVector(const PositionPiece* pieces, const ConvGeometry& g,
                                             const Stage& s, int64_t channels, const float* stage,
                                             const int64_t* taps, const Store& store) {
  int64_t count = 1;
  while (pieces[count].lane != 0) ++count;
  const auto run = [&](auto known) HWY_ATTR {
    UnfoldPieces(known, pieces, count, channels, stage, s.channel_size, taps, g.taps(), store);
  };
  if (count == 1) {
    run(hwy::SizeTag<1>());
  } else if (count == 2) {
    run(hwy::SizeTag<2>());
  } else if (count == 3) {
    run(hwy::SizeTag<3>());
  } else {
    run(hwy::SizeTag<4>());
  }
  return pieces + count;
}

// Stages the inside of channels [first, first + channels); StageOutside() has written the padding.
HWY_INLINE void StageChannels(const ConvBlock& block, const Stage& s, int64_t first,
                              int64_t channels, float* stage) {
  const ConvGeometry& g = *block.geometry;
  const int64_t plane = g.in_h * g.in_w;
  for (int64_t c = 0; c < channels; ++c) {
    StageChannel(g, s, block.x + (first + c) * plane, stage + c * s.channel_size);
  }
}

HWY_INLINE void PackUnfolded(const ConvBlock& block, const Stage& s, const int64_t* taps,
                             int64_t first, int64_t channels, float* b) {
  const ConvGeometry& g = *block.geometry;
  // A few channels at a time, so that the stage stays in the first-level cache.
  constexpr int64_t kStageFloats = 8192;
  const int64_t step = HWY_MAX(HWY_MIN(kStageFloats / s.channel_size, channels), 1);
  float* stage = ThreadScratch<float>(ScratchUse::kStage, step * s.channel_size + kLanes);
  StageOutside(s, 0.0f, step, stage);
  const PositionPiece* const pieces = FindPieces(block, s);
  const int64_t depth = channels * g.taps();
  for (int64_t c = 0; c < channels; c += step) {
    const int64_t now = HWY_MIN(channels - c, step);
    StageChannels(block, s, first + c, now, stage);
    const PositionPiece* vector_pieces = pieces;
    for (int64_t j = 0; j < block.positions; j += kLanes) {
      const int64_t column = j % kPanelColumns;
      float* to = b + (j - column) * depth + c * g.taps() * kPanelColumns + column;
      vector_pieces = UnfoldVector(vector_pieces, g, s, now, stage, taps,
                                   [&](int64_t term, VF vector) HWY_ATTR {
                                     hn::StoreU(vector, DF(), to + term * kPanelColumns);
                                   });
    }
  }
}

// Rounds one tile into the output planes of its rows, where positions may not be contiguous.
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

// Input channels multiplied in one pass.
HWY_INLINE int64_t ChannelStep(const ConvGeometry& g) {
  const int64_t most = HWY_MAX(kBlockDepth / HWY_MAX(g.taps(), 1), 1);
  return HWY_MAX(EvenPart(g.group_in, most), 1);
}

// Widens rows of the weights to float panels.
HWY_INLINE void PackWeights(const ConvBlock& block, int64_t row, int64_t rows, int64_t first,
                            int64_t depth, float* a) {
  for (int64_t i = 0; i < rows; i += kPanelRows) {
    FillPanel(*block.weights, block.first_panel + (row + i) / kPanelRows, first, depth,
              a + i * depth);
  }
}

// What to prefetch: the weights of the tile of rows after `row`, or of the first tile of the next
// pass, in two parts.
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

// The same in `tiles` parts, when one pass takes all terms.
HWY_INLINE Ahead NextRows(const ConvBlock& block, int64_t row, int64_t tiles) {
  const WeightPanels& w = *block.weights;
  row += kTileRows;
  if (w.form != WeightForm::kDense || row >= block.channels) return {};
  const int64_t at = block.first_panel + (block.channel + row) / kPanelRows;
  const int64_t count = HWY_MIN(block.channels - row, kTileRows) * w.depth;
  return AheadOf(w.halves.data() + at * w.depth * kPanelRows, count, 0, tiles, w.depth);
}

// The output tile of rows [channel, channel + channels) of the block, from column `position` on.
HWY_INLINE HalfTile TileOf(const ConvBlock& block, int64_t channel, int64_t channels,
                           int64_t position, int64_t positions) {
  const int64_t plane = block.geometry->y_plane;
  channel += block.channel;
  return {block.y + channel * plane + block.position + position,
          plane,
          block.bias + channel,
          nullptr,
          channels,
          positions,
          block.epilogue.limits()};
}

// ConvKind::kPanels: output channels as rows, positions as columns.
HWY_INLINE void MultiplyConvBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const Stage stage = PlanStage(g, block.position, block.positions);
  const int64_t* taps = TapOffsets(g, stage);
  const Epilogue rest = block.epilogue.rest();
  MultiplyPanels(
      block.channels, block.positions, g.depth(), ChannelStep(g) * g.taps(),
      [&](int64_t first, int64_t depth, float* b) HWY_ATTR {
        if (depth == 0) return;
        PackUnfolded(block, stage, taps, first / g.taps(), depth / g.taps(), b);
      },
      [&](int64_t row, int64_t rows, int64_t first, int64_t depth, float* a)
          HWY_ATTR { PackWeights(block, block.channel + row, rows, first, depth, a); },
      [&](int64_t row, int64_t rows, int64_t position, int64_t positions) HWY_ATTR {
        return g.dense_output() ? TileOf(block, row, rows, position, positions) : HalfTile();
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

// Packs `positions` columns of B of a pointwise convolution, from column `position` of the block
// on.
HWY_INLINE void PackColumns(const ConvBlock& block, int64_t position, int64_t positions, float* b) {
  const ConvGeometry& g = *block.geometry;
  const Half* from = block.x + block.position + position;
  for (int64_t c = 0; c < g.group_in; ++c, from += g.in_h * g.in_w, b += kPanelColumns) {
    WidenRun(from, b, positions);
  }
}

// A pointwise convolution. Each panel of columns is multiplied by all rows of A that the
// second-level cache holds. The first tile reads B from the input in place and packs it for the
// other tiles.
HWY_INLINE void MultiplyPointwiseBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  constexpr int64_t kMostFloats = 1 << 16;
  constexpr int64_t kFinished = 1024;  // columns: the epilogue is slow for short runs
  constexpr int64_t kKeptRows = 6 * kTileRows;
  const int64_t depth = g.group_in, plane = g.in_h * g.in_w;
  const int64_t most = HWY_MAX(kMostFloats / depth / kTileRows, 1) * kTileRows;
  const int64_t step = HWY_MIN(RoundUp(block.channels, kTileRows), most);
  float* const a = ThreadScratch<float>(ScratchUse::kPanelA, step * depth + kLanes);
  float* const b = ThreadScratch<float>(ScratchUse::kPanelB, kPanelColumns * depth + kLanes);
  const Epilogue rest = block.epilogue.rest();
  for (int64_t first = 0; first < block.channels; first += step) {
    const int64_t rows = HWY_MIN(block.channels - first, step);
    PackWeights(block, block.channel + first, rows, 0, depth, a);
    Half* const y = block.y + (block.channel + first) * g.y_plane + block.position;
    int64_t finished = 0, width = 0;
    for (int64_t column = 0; column < block.positions; column += width) {
      width = TileWidth(block.positions - column);
      const auto multiply = [&](const auto& columns, int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t i = begin; i < end; i += kTileRows) {
          const int64_t height = HWY_MIN(rows - i, kTileRows);
          MultiplyTile(depth, a + i * depth, depth * kPanelRows, height, columns, width, nullptr,
                       TileOf(block, first + i, height, column, width), Ahead());
        }
      };
      if (ANEMONE_MATH_WIDE_TILE && ANEMONE_MATH_NATIVE_HALF && width % kLanes == 0) {
        const PlaneColumns in_place{block.x + block.position + column, plane};
        if (rows < kKeptRows) {
          multiply(in_place, 0, rows);
        } else {
          multiply(KeptColumns{in_place, b}, 0, kTileRows);
          multiply(b, kTileRows, rows);
        }
      } else {
        PackColumns(block, column, width, b);
        multiply(b, 0, rows);
      }
      const int64_t done = column + width - finished;
      if (done < kFinished && column + width < block.positions) continue;
      rest.FinishRuns(y + finished, rows, done, g.y_plane);
      finished += done;
    }
  }
}

// Like MultiplyConvBlock() in one pass, for whole rows of positions. The columns of all channels
// are read from the stage in place.
HWY_INLINE void MultiplyStagedBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const Stage s = PlanStage(g, block.position, block.positions);
  const int64_t* taps = TapOffsets(g, s);
  float* stage = ThreadScratch<float>(ScratchUse::kStage, g.group_in * s.channel_size + kLanes);
  StageOutside(s, 0.0f, g.group_in, stage);
  StageChannels(block, s, 0, g.group_in, stage);
  const int64_t depth = g.depth(), rows = block.positions / s.columns;
  int64_t* steps = ThreadScratch<int64_t>(ScratchUse::kPieces, depth);
  for (int64_t k = 0; k < depth; ++k) {
    steps[k] = k / g.taps() * s.channel_size + taps[k % g.taps()];
  }
  const int64_t tiles = rows * CeilDiv(s.columns, 3 * kLanes);
  float* a = ThreadScratch<float>(ScratchUse::kPanelA, kTileRows * depth);
  float* tile = ThreadScratch<float>(ScratchUse::kTile, kTileSize + kLanes);
  const Epilogue rest = block.epilogue.rest();
  for (int64_t i = 0; i < block.channels; i += kTileRows) {
    const int64_t height = HWY_MIN(block.channels - i, kTileRows);
    PackWeights(block, block.channel + i, height, 0, depth, a);
    Ahead ahead = NextRows(block, i, tiles);
    HalfTile to = TileOf(block, i, height, 0, 0);
    Half* const y = to.to;
    for (int64_t row = 0; row < rows; ++row) {
      const float* const from = stage + s.RowOffset(s.first_row + row);
      for (int64_t column = 0; column < s.columns; column += to.columns, to.to += to.columns) {
        to.columns = TileWidth(s.columns - column);
        const UnpackedColumns<float> columns{from + column, steps};
        if (g.dense_output()) {
          MultiplyTile(depth, a, depth * kPanelRows, height, columns, to.columns, nullptr, to,
                       ahead);
        } else {
          AddTile(depth, a, depth * kPanelRows, height, columns, to.columns, tile, false, ahead);
          StorePositions(block, tile, block.channel + i, height,
                         block.position + row * s.columns + column, to.columns);
        }
        ahead.from += depth * ahead.step;
      }
    }
    if (g.dense_output()) rest.FinishRuns(y, height, block.positions, g.y_plane);
  }
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

// Stores a vector of rows of A at one term: to[row / 4 * panel_step + row % 4].
HWY_INLINE void StoreRows(VF rows, float* to, int64_t panel_step) {
  const hn::CappedTag<float, kPanelRows> d;
  HWY_ALIGN float lanes[kLanes];
  hn::Store(rows, DF(), lanes);
  HWY_UNROLL(4)
  for (int64_t i = 0; i < kLanes; i += kPanelRows, to += panel_step) {
    hn::StoreU(hn::Load(d, lanes + i), d, to);
  }
}

// Packs A of a block whose rows are positions, for channels [first, first + channels):
// [position / 4][term][4]. Writes whole vectors of positions.
HWY_INLINE void PackPositions(const ConvBlock& block, const Stage& s, const int64_t* taps,
                              int64_t first, int64_t channels, float* a) {
  const ConvGeometry& g = *block.geometry;
  const int64_t panel_step = channels * g.taps() * kPanelRows;
  float* stage = nullptr;
  const PositionPiece* pieces = nullptr;
  if (!g.pointwise()) {
    pieces = FindPieces(block, s);
    stage = ThreadScratch<float>(ScratchUse::kStage, channels * s.channel_size + kLanes);
    StageOutside(s, 0.0f, channels, stage);
    StageChannels(block, s, first, channels, stage);
  }
  for (int64_t i = 0; i < block.positions; i += kLanes) {
    const int64_t count = HWY_MIN(block.positions - i, kLanes);
    float* to = a + i / kPanelRows * panel_step + i % kPanelRows;
    const auto store = [&](int64_t term, VF vector)
                           HWY_ATTR { StoreRows(vector, to + term * kPanelRows, panel_step); };
    if (!g.pointwise()) {
      pieces = UnfoldVector(pieces, g, s, channels, stage, taps, store);
      continue;
    }
    const int64_t plane = g.in_h * g.in_w;
    const Half* from = block.x + first * plane + block.position + i;
    for (int64_t c = 0; c < channels; ++c, from += plane) {
      store(c, count == kLanes ? LoadHalf(from) : LoadHalfN(from, count));
    }
  }
}

// ConvKind::kMatrix: positions as rows and output channels as columns, so that vectors are full
// even if there are few positions.
HWY_INLINE void MultiplyChannelBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const Stage s = PlanStage(g, block.position, block.positions);
  const int64_t* taps = TapOffsets(g, s);
  const WeightPanels& w = *block.weights;
  const int64_t end = block.channel + block.channels;
  const auto weights = [&](int64_t panel, int64_t first) {
    return w.halves.data() + (panel * g.depth() + first) * kPanelColumns;
  };
  const auto multiply = [&](const auto& read_b) HWY_ATTR {
    MultiplyFewRows(
        block.positions, block.channel, end, g.depth(), ChannelStep(g) * g.taps(),
        [&](int64_t first, int64_t depth, float* a)
            HWY_ATTR { PackPositions(block, s, taps, first / g.taps(), depth / g.taps(), a); },
        read_b,
        [&](const float* tile, int64_t row, int64_t rows, int64_t channel, int64_t channels)
            HWY_ATTR { StoreChannels(block, tile, block.position + row, rows, channel, channels); },
        [&](int64_t first, int64_t terms, int64_t row, int64_t channel) HWY_ATTR {
          const int64_t next = channel / kPanelColumns + 1;
          if (w.form != WeightForm::kDense || next * kPanelColumns >= end) return Ahead();
          return AheadOf(weights(next, first), terms * kPanelColumns, row / kTileRows,
                         CeilDiv(block.positions, kTileRows), terms);
        });
  };
  if (ANEMONE_MATH_NATIVE_HALF && w.form == WeightForm::kDense) {
    multiply([&](int64_t panel, int64_t first, int64_t, float*)
                 HWY_ATTR { return weights(panel, first); });
  } else {
    multiply([&](int64_t panel, int64_t first, int64_t depth, float* b) HWY_ATTR {
      FillPanel(w, panel, first, depth, b);
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
