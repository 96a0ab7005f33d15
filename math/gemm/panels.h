// math/gemm/panels.h: the sizes of packed panels and tiles, and how matrix products are divided
// into blocks for threads and caches. Internal.
#ifndef ANEMONE_MATH_GEMM_PANELS_H_
#define ANEMONE_MATH_GEMM_PANELS_H_

#include <algorithm>
#include <cstdint>

namespace anemone::math {

inline constexpr int64_t kPanelRows = 4;      // rows of a panel of A
inline constexpr int64_t kTileRows = 8;       // rows of a tile of C: two panels
inline constexpr int64_t kPanelColumns = 48;  // columns of a panel of B and of a tile of C
inline constexpr int64_t kTileSize = kTileRows * kPanelColumns;

inline constexpr int64_t kMostLanes = 16;  // floats in the longest vector of any instruction set

// The most terms per pass: 512 x 8 floats of A stay in the first-level cache, 512 x 192 floats of B
// (384 KB) in the second-level cache.
inline constexpr int64_t kBlockDepth = 512;
inline constexpr int64_t kBlockColumns = 4 * kPanelColumns;
inline constexpr int64_t kBlockRows = 512;

inline constexpr int64_t kLineBytes = 64;  // of a cache line

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Whether at most a fifth of the lanes of vectors along `count` elements are empty.
inline bool FillsVectors(int64_t count) { return RoundUp(count, kMostLanes) * 4 <= count * 5; }

struct BlockSize {
  int64_t rows, columns;
};

// Part `part` when [0, count) is divided into `parts` parts of whole `step`s. Sizes differ by at
// most one step.
struct Part {
  int64_t first, last;

  Part(int64_t count, int64_t step, int64_t part, int64_t parts)
      : first(CeilDiv(count, step) * part / parts * step),
        last(std::min(CeilDiv(count, step) * (part + 1) / parts * step, count)) {}
  int64_t size() const { return last - first; }
};

// A division of C into blocks, by_rows x by_columns. One task computes one block.
struct Cut {
  BlockSize size;  // of C
  BlockSize step;  // blocks are multiples of it
  int64_t by_rows = 1, by_columns = 1;

  int64_t blocks() const { return by_rows * by_columns; }
  Part Rows(int64_t block) const { return {size.rows, step.rows, block / by_columns, by_rows}; }
  Part Columns(int64_t block) const {
    return {size.columns, step.columns, block % by_columns, by_columns};
  }
  BlockSize largest() const {
    return {CeilDiv(CeilDiv(size.rows, step.rows), by_rows) * step.rows,
            CeilDiv(CeilDiv(size.columns, step.columns), by_columns) * step.columns};
  }
};

// The size of the parts when `count` is divided evenly into parts of at most `most`.
inline int64_t EvenPart(int64_t count, int64_t most) {
  return CeilDiv(count, std::max<int64_t>(CeilDiv(count, most), 1));
}

// The number of columns of B, with `depth` terms each, that fit B's share of the cache.
inline int64_t ColumnsOf(int64_t depth) {
  constexpr int64_t kMostColumns = 64 * kPanelColumns;
  const int64_t columns = kBlockDepth * kBlockColumns / std::max<int64_t>(depth, 1);
  return std::clamp(columns / kPanelColumns * kPanelColumns, kBlockColumns, kMostColumns);
}

// The cost of packing: packing B costs as much as multiplying it by b_rows rows, packing A as much
// as multiplying it by a_columns columns.
struct PackCost {
  int64_t b_rows, a_columns;
};

// Divides C into parts, one or a few per thread, and each part into as few blocks as possible of at
// most `most` and of whole `step`s. Consecutive blocks of a part go to one thread, except if there
// are several parts along the columns and the part has several blocks along the rows. A part packs
// its rows of A once per block along its columns, and its columns of B once per block along its
// rows.
inline Cut CutBlocks(BlockSize size, BlockSize most, BlockSize step, PackCost pack, int64_t copies,
                     int64_t threads) {
  const auto pieces = [](int64_t count, int64_t by, int64_t at_most) {
    return std::max<int64_t>(CeilDiv(CeilDiv(count, by), std::max<int64_t>(at_most / by, 1)), 1);
  };
  const auto in_blocks = [&](const Cut& parts) {
    const BlockSize part = parts.largest();
    const int64_t by_rows = parts.by_rows * pieces(part.rows, step.rows, most.rows);
    const int64_t by_columns = parts.by_columns * pieces(part.columns, step.columns, most.columns);
    // No block is empty.
    return Cut{size, step, std::min(by_rows, std::max<int64_t>(CeilDiv(size.rows, step.rows), 1)),
               std::min(by_columns, std::max<int64_t>(CeilDiv(size.columns, step.columns), 1))};
  };
  Cut best = in_blocks({size, step});
  if (threads == 1) return best;
  // The estimated time of the slowest thread: it takes ceil(parts / threads) parts, of which one
  // may be the largest.
  const auto time = [&](const Cut& parts, const Cut& cut) {
    const int64_t b_rows = cut.by_rows / parts.by_rows * pack.b_rows;
    const int64_t a_columns = cut.by_columns / parts.by_columns * pack.a_columns;
    const auto work = [&](double rows, double columns) {
      return (rows + static_cast<double>(b_rows)) * (columns + static_cast<double>(a_columns));
    };
    const double rows = static_cast<double>(size.rows) / static_cast<double>(parts.by_rows);
    const double columns =
        static_cast<double>(size.columns) / static_cast<double>(parts.by_columns);
    const BlockSize largest = parts.largest();
    const auto each = static_cast<double>(CeilDiv(copies * parts.blocks(), threads));
    return (each - 1) * work(rows, columns) +
           work(static_cast<double>(largest.rows), static_cast<double>(largest.columns));
  };
  double best_time = time({size, step}, best);
  const int64_t most_parts = 4 * threads / std::max<int64_t>(copies, 1);
  const int64_t most_by_rows = std::min(CeilDiv(size.rows, step.rows), most_parts);
  for (int64_t i = 1; i <= most_by_rows; ++i) {
    const int64_t most_by_columns = std::min(CeilDiv(size.columns, step.columns), most_parts / i);
    for (int64_t j = 1; j <= most_by_columns; ++j) {
      const Cut parts{size, step, i, j}, cut = in_blocks(parts);
      const double part_time = time(parts, cut);
      if (part_time < best_time) best = cut, best_time = part_time;
    }
  }
  return best;
}

// Blocks sized for the caches.
inline Cut ChooseBlocks(BlockSize size, int64_t depth, int64_t column_step, int64_t copies,
                        int64_t threads, PackCost pack = {.b_rows = 4, .a_columns = 4}) {
  return CutBlocks(size, {kBlockRows, ColumnsOf(depth)}, {kTileRows, column_step}, pack, copies,
                   threads);
}

// For an unpacked B: blocks have all columns, and as many rows as the second-level cache holds.
// When C is divided by rows, a thread reuses the B in its cache, so rows are also divided by half
// tiles (4 rows). A single tile of rows is not divided, because it reads B only once.
inline Cut ChooseStreamed(BlockSize size, int64_t depth, int64_t copies, int64_t threads) {
  constexpr int64_t kMostRows = 256, kMostFloats = 1 << 18;
  const int64_t most = kMostFloats / std::max<int64_t>(depth, 1) / kTileRows * kTileRows;
  return CutBlocks(size,
                   {std::clamp(most, kTileRows, kMostRows), RoundUp(size.columns, kPanelColumns)},
                   {size.rows > kTileRows ? kPanelRows : kTileRows, kPanelColumns},
                   {.b_rows = 0, .a_columns = 4}, copies, threads);
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_GEMM_PANELS_H_
