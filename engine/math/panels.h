// engine/math/panels.h: the sizes in which matrix operands are packed and multiplied. Internal.
#ifndef ENGINE_MATH_PANELS_H_
#define ENGINE_MATH_PANELS_H_

#include <algorithm>
#include <cstdint>

namespace anemone::math {

inline constexpr int64_t kPanelRows = 4;      // rows of a panel of A
inline constexpr int64_t kTileRows = 8;       // rows of a tile of C: two panels
inline constexpr int64_t kPanelColumns = 48;  // columns of a panel of B and of a tile of C
inline constexpr int64_t kTileSize = kTileRows * kPanelColumns;

// Most terms summed per pass: 512 x 8 floats of A stay in the first-level cache, 512 x 192 of B
// (384 KB) in the second.
inline constexpr int64_t kBlockDepth = 512;
inline constexpr int64_t kBlockColumns = 4 * kPanelColumns;
inline constexpr int64_t kBlockRows = 512;

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Rows and columns of C that one task computes.
struct BlockSize {
  int64_t rows, columns;
};

// `count` in equal parts of at most `most`.
inline int64_t EvenPart(int64_t count, int64_t most) {
  return CeilDiv(count, std::max<int64_t>(CeilDiv(count, most), 1));
}

// Columns of B that its share of the cache holds, of so many terms.
inline int64_t ColumnsOf(int64_t depth) {
  constexpr int64_t kMostColumns = 64 * kPanelColumns;
  const int64_t columns = kBlockDepth * kBlockColumns / std::max<int64_t>(depth, 1);
  return std::clamp(columns / kPanelColumns * kPanelColumns, kBlockColumns, kMostColumns);
}

// What packing costs: as much as multiplying by so many rows (B) or columns (A).
struct PackCost {
  int64_t b_rows, a_columns;
};

// Blocks of at most `most` and of whole `step`s, as few as that makes, or more if more threads then
// end sooner: each thread takes as many blocks as another or one more, and each block packs its
// part of A and B.
inline BlockSize CutBlocks(int64_t rows, int64_t columns, BlockSize most, BlockSize step,
                           PackCost pack, int64_t copies, int64_t threads) {
  const auto block = [&](int64_t by_rows, int64_t by_columns) {
    return BlockSize{RoundUp(CeilDiv(rows, by_rows), step.rows),
                     RoundUp(CeilDiv(columns, by_columns), step.columns)};
  };
  // A twentieth of a block is added, for a thread that is held up.
  const auto time = [&](BlockSize b) {
    const int64_t tasks = copies * CeilDiv(rows, b.rows) * CeilDiv(columns, b.columns);
    return (20 * CeilDiv(tasks, threads) + 1) * (b.rows + pack.b_rows) *
           (b.columns + pack.a_columns);
  };
  const int64_t by_rows = std::max<int64_t>(CeilDiv(rows, most.rows), 1);
  const int64_t by_columns = std::max<int64_t>(CeilDiv(columns, most.columns), 1);
  BlockSize best = block(by_rows, by_columns);
  if (threads == 1) return best;
  const int64_t most_blocks = 4 * threads / std::max<int64_t>(copies, 1);
  const int64_t most_by_rows = std::min(CeilDiv(rows, step.rows), most_blocks / by_columns);
  const int64_t most_columns = CeilDiv(columns, step.columns);
  int64_t best_time = time(best);
  for (int64_t i = by_rows; i <= most_by_rows; ++i) {
    for (int64_t j = by_columns; j <= std::min(most_columns, most_blocks / i); ++j) {
      const BlockSize other = block(i, j);
      const int64_t other_time = time(other);
      if (other_time < best_time) best = other, best_time = other_time;
    }
  }
  return best;
}

// Blocks as large as the caches like.
inline BlockSize ChooseBlock(int64_t rows, int64_t columns, int64_t depth, int64_t column_step,
                             int64_t copies, int64_t threads) {
  return CutBlocks(rows, columns, {kBlockRows, ColumnsOf(depth)}, {kTileRows, column_step},
                   {.b_rows = 4, .a_columns = 4}, copies, threads);
}

// Where B need not be packed: all columns, and as many rows as the second-level cache holds. Cut by
// rows, a thread goes on from what it left in its own cache, so rows are cut by half tiles too;
// those of one tile are not, for it reads B once.
inline BlockSize ChooseStreamed(int64_t rows, int64_t columns, int64_t depth, int64_t copies,
                                int64_t threads) {
  constexpr int64_t kMostRows = 256, kMostFloats = 1 << 18;
  const int64_t most = kMostFloats / std::max<int64_t>(depth, 1) / kTileRows * kTileRows;
  return CutBlocks(rows, columns,
                   {std::clamp(most, kTileRows, kMostRows), RoundUp(columns, kPanelColumns)},
                   {rows > kTileRows ? kPanelRows : kTileRows, kPanelColumns},
                   {.b_rows = 0, .a_columns = 4}, copies, threads);
}

}  // namespace anemone::math

#endif  // ENGINE_MATH_PANELS_H_
