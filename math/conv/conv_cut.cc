#include "math/conv/conv_cut.h"

#include <algorithm>

#include "math/core/parallel.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"

namespace anemone::math {
namespace {

// A stage of all channels fits the second-level cache next to the weights.
constexpr int64_t kStageFloats = 32768;

// The number of output rows whose stage fits.
int64_t StagedRows(const ConvGeometry& g) {
  const Stage row = PlanStage(g, 0, g.out_w);
  const int64_t rows = kStageFloats / (g.group_in * row.row_size) - row.rows;
  return rows < 0 ? 0 : std::min(rows / row.stride_h + 1, g.out_h);
}

// The number of parts of an output row of one row of taps, so that the stage of each fits.
int64_t StagedParts(const ConvGeometry& g) {
  const auto floats = [&](int64_t columns) {
    return g.group_in * PlanStage(g, 0, columns).row_size;
  };
  const int64_t shared = floats(1);  // by the first positions of a part and the last of another
  return CeilDiv(floats(g.out_w), std::max<int64_t>(kStageFloats - shared, 1));
}

// The positions that are computed from one stage at least.
int64_t StagedPositions(const ConvGeometry& g) {
  const int64_t rows = StagedRows(g);
  if (rows > 0) return rows * g.out_w;
  return g.kernel_h == 1 ? g.out_w / StagedParts(g) : 0;
}

// `lane_terms` terms are multiplied in each lane at once.
ConvCut CutRows(const ConvGeometry& g, const Cut& cut, int64_t lane_terms) {
  const BlockSize largest = cut.largest();
  const int64_t cost = largest.rows * largest.columns * g.depth() / (16 * lane_terms);
  if (g.out_w <= largest.columns) return {cut.by_rows, cut.by_columns, kMostLanes, 0, cost};
  // Divides rows, so that less of the input is staged.
  const int64_t per_row = CeilDiv(g.out_w, largest.columns);
  return {cut.by_rows, g.out_h * per_row, kMostLanes, per_row, cost};
}

}  // namespace

// Whether reading the stage in place is faster than unfolding it. Unfolding costs as much as four
// rows of products. Reading in place wastes the lanes after the end of each row of positions, and a
// quarter of the time if a row is one vector, because more is loaded for each product.
bool ReadsStage(const ConvGeometry& g) {
  if (g.taps() <= 1 || g.depth() > kBlockDepth) return false;
  int64_t unused = RoundUp(g.out_w, kMostLanes) - g.out_w;
  if (g.out_w <= kMostLanes) unused += g.out_w / 4;
  return g.group_out * unused < 4 * g.out_w && StagedPositions(g) >= 2 * kPanelColumns;
}

ConvCut CutStaged(const ConvGeometry& g) {
  const int64_t staged = StagedRows(g);
  const int64_t least = staged > 0 ? CeilDiv(g.out_h, staged) : g.out_h * StagedParts(g);
  const int64_t count = RoundUp(least, PartsForThreads(g.batch * g.groups));
  const int64_t cost = g.group_out * g.positions() / count * g.depth() / 16;
  if (count <= g.out_h) return {1, count, g.out_w, 0, cost};
  // There are fewer rows than threads, as in a sequence, or a part of a row fills the stage.
  const int64_t per_row = std::min(CeilDiv(count, g.out_h), CeilDiv(g.out_w, kPanelColumns));
  return {1, g.out_h * per_row, kMostLanes, per_row, cost};
}

// Nothing limits the size of a block. Each packs its rows of A.
ConvCut CutPointwise(const ConvGeometry& g) {
  const BlockSize size = {g.group_out, g.positions()};
  const Cut cut = CutBlocks(
      size, {RoundUp(size.rows, kTileRows), RoundUp(size.columns, kMostLanes)},
      {kTileRows, kMostLanes}, {.b_rows = 1, .a_columns = 4}, g.batch * g.groups, ThreadCount());
  const BlockSize largest = cut.largest();
  return {cut.by_rows, cut.by_columns, kMostLanes, 0,
          largest.rows * largest.columns * g.depth() / 16};
}

ConvCut CutUnfolded(const ConvGeometry& g) {
  // In rows of products. With short rows of positions, whose vectors are loaded in several pieces,
  // unfolding costs more (20 to 30), with long rows less.
  constexpr int64_t kUnfolding = 12;
  Cut cut = ChooseBlocks({g.group_out, g.positions()}, g.depth(), kMostLanes, g.batch * g.groups,
                         ThreadCount(), {.b_rows = kUnfolding, .a_columns = 4});
  constexpr int64_t kMaxBlockFloats = kBlockDepth * kBlockColumns * 2;
  while (cut.largest().columns > kPanelColumns &&
         g.taps() * cut.largest().columns > kMaxBlockFloats) {
    ++cut.by_columns;
  }
  return CutRows(g, cut, 1);
}

// A block has all rows: weights of 8 bits need little of the cache, and the input is converted
// once.
ConvCut CutBytes(const ConvGeometry& g) {
  constexpr int64_t kMostWords = 1 << 16;
  const int64_t words = CeilDiv(g.group_in, kQuad) * g.taps();
  const BlockSize size = {g.group_out, g.positions()};
  const BlockSize most = {RoundUp(size.rows, kTileRows),
                          std::max(kMostWords / words / kPanelColumns, int64_t{1}) * kPanelColumns};
  return CutRows(g,
                 CutBlocks(size, most, {kTileRows, kMostLanes}, {.b_rows = 8, .a_columns = 0},
                           g.batch * g.groups, ThreadCount()),
                 kQuad);
}

}  // namespace anemone::math
