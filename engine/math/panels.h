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

// `block`, made smaller until there are enough of them for `threads`. Smaller blocks pack their
// operands more often: columns are narrowed first, since B costs more to pack than A.
inline BlockSize Shrunk(BlockSize block, int64_t rows, int64_t columns, int64_t copies,
                        int64_t threads) {
  const auto tasks = [&] {
    return copies * CeilDiv(rows, block.rows) * CeilDiv(columns, block.columns);
  };
  const int64_t wanted = threads == 1 ? 1 : 3 * threads;
  while (tasks() < wanted && block.columns > 2 * kPanelColumns) block.columns -= kPanelColumns;
  while (tasks() < wanted && block.rows > 4 * kTileRows) {
    block.rows = RoundUp(block.rows / 2, kTileRows);
  }
  return block;
}

// Blocks as large as the caches like.
inline BlockSize ChooseBlock(int64_t rows, int64_t columns, int64_t depth, int64_t copies,
                             int64_t threads) {
  return Shrunk({std::min(RoundUp(rows, kTileRows), kBlockRows),
                 std::min(RoundUp(columns, kPanelColumns), ColumnsOf(depth))},
                rows, columns, copies, threads);
}

// Where B need not be packed: all columns, and as many rows as the second-level cache holds.
inline BlockSize ChooseStreamed(int64_t rows, int64_t columns, int64_t depth, int64_t copies,
                                int64_t threads) {
  constexpr int64_t kMostRows = 256, kMostFloats = 1 << 18;
  const int64_t most = kMostFloats / std::max<int64_t>(depth, 1) / kTileRows * kTileRows;
  return Shrunk({std::min(RoundUp(rows, kTileRows), std::clamp(most, kTileRows, kMostRows)),
                 RoundUp(columns, kPanelColumns)},
                rows, columns, copies, threads);
}

}  // namespace anemone::math

#endif  // ENGINE_MATH_PANELS_H_
