// math/gemm/gemm-inl.h: packs and multiplies one block of a matrix product, for gemm.cc and
// sdpa.cc. Internal.
#if defined(ANEMONE_MATH_GEMM_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_GEMM_INL_H_
#undef ANEMONE_MATH_GEMM_GEMM_INL_H_
#else
#define ANEMONE_MATH_GEMM_GEMM_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/kernel-inl.h"
#include "math/gemm/weight_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Writes four vectors as to[lane * 4 + line], `count` lanes of them.
HWY_INLINE void StoreLines(VF a, VF b, VF c, VF d, int64_t count, float* to) {
  if (count >= kLanes) return hn::StoreInterleaved4(a, b, c, d, DF(), to);
  HWY_ALIGN float lanes[kLanes * kPanelRows];
  hn::StoreInterleaved4(a, b, c, d, DF(), lanes);
  std::memcpy(to, lanes, count * kPanelRows * sizeof(float));
}

// Interleaves four lines of `depth` Halfs as floats: to[k * 4 + line]. Lines are `line_step` apart.
// Only the first `lines` exist; the others are written as zero.
HWY_INLINE void InterleaveLines(const Half* from, int64_t line_step, int64_t lines, int64_t depth,
                                float* to) {
  for (int64_t k = 0; k < depth; k += kLanes) {
    const int64_t count = HWY_MIN(depth - k, kLanes);
    const auto line = [&](int64_t i) HWY_ATTR {
      const Half* const at = from + i * line_step + k;
      if (i >= lines) return hn::Zero(DF());
      return count == kLanes ? LoadHalf(at) : LoadHalfN(at, count);
    };
    StoreLines(line(0), line(1), line(2), line(3), count, to + k * kPanelRows);
  }
}

// The same, where the elements of a line are `element_step` apart.
HWY_INLINE void InterleaveStrided(const Half* from, int64_t line_step, int64_t element_step,
                                  int64_t lines, int64_t depth, float* to) {
  if (element_step == 1) return InterleaveLines(from, line_step, lines, depth, to);
  for (int64_t k = 0; k < depth; ++k) {
    for (int64_t i = 0; i < kPanelRows; ++i) {
      to[k * kPanelRows + i] = i < lines ? ToFloat(from[i * line_step + k * element_step]) : 0.0f;
    }
  }
}

// Packs `columns` columns of B from (first, column) on, with `depth` terms, as
// panels[column / 48][depth][48]. Columns after the last are zero up to a whole vector; those
// behind it are not written, and not read.
HWY_INLINE void PackColumns(const GemmOperands& g, int64_t first, int64_t depth, int64_t column,
                            int64_t columns, float* panels) {
  if (depth == 0) return;  // B may be null then, and so may A
  for (int64_t j = 0; j < columns; j += kPanelColumns) {
    float* panel = panels + j * depth;
    const int64_t width = HWY_MIN(columns - j, kPanelColumns);
    if (g.b_panels != nullptr) {
      FillPanel(*g.b_panels, (column + j) / kPanelColumns, first, depth, panel);
      continue;
    }
    const Half* from = g.b + first * g.b_row + (column + j) * g.b_column;
    if (g.b_column == 1) {
      for (int64_t k = 0; k < depth; ++k) {
        const Half* const row = from + k * g.b_row;
        float* const to = panel + k * kPanelColumns;
        int64_t i = 0;
        for (; i + kLanes <= width; i += kLanes) hn::StoreU(LoadHalf(row + i), DF(), to + i);
        if (i < width) hn::StoreU(LoadHalfN(row + i, width - i), DF(), to + i);
      }
      continue;
    }
    float* lines = ThreadScratch<float>(ScratchUse::kRow, depth * kPanelRows);
    const int64_t written = RoundUp(width, HWY_MAX(kLanes, kPanelRows));
    for (int64_t i = 0; i < written; i += kPanelRows) {
      const int64_t count = HWY_MAX(HWY_MIN(width - i, kPanelRows), 0);
      InterleaveStrided(from + i * g.b_column, g.b_column, g.b_row, count, depth, lines);
      for (int64_t k = 0; k < depth; ++k) {
        std::memcpy(panel + k * kPanelColumns + i, lines + k * kPanelRows,
                    kPanelRows * sizeof(float));
      }
    }
  }
}

// Packs up to 8 rows of A from `row` on as [panel][depth][4].
HWY_INLINE void PackRows(const GemmOperands& g, int64_t row, int64_t rows, int64_t first,
                         int64_t depth, float* panels) {
  if (depth == 0) return;
  for (int64_t i = 0; i < rows; i += kPanelRows) {
    InterleaveStrided(g.a + (row + i) * g.a_row + first * g.a_column, g.a_row, g.a_column,
                      HWY_MIN(rows - i, kPanelRows), depth, panels + i * depth);
  }
}

// The tile of c to write directly; empty if the rows of c are not contiguous.
HWY_INLINE HalfTile PlaceTile(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                              int64_t columns) {
  if (g.c_column != 1) return {};
  return {g.c + row * g.c_row + column,
          g.c_row,
          nullptr,
          g.bias == nullptr ? nullptr : g.bias + column,
          rows,
          columns};
}

HWY_INLINE void StoreTile(const GemmOperands& g, const float* tile, int64_t row, int64_t rows,
                          int64_t column, int64_t columns) {
  const float* bias = g.bias == nullptr ? nullptr : g.bias + column;
  for (int64_t i = 0; i < rows; ++i) {
    StoreSums(tile + i * kPanelColumns, bias, 0.0f, columns,
              g.c + (row + i) * g.c_row + column * g.c_column, g.c_column);
  }
}

// Applies the epilogue to rows of c if they are contiguous. Otherwise Multiply() applies it at the
// end.
HWY_INLINE void FinishRows(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                           int64_t columns) {
  if (g.c_column != 1) return;
  g.epilogue.FinishRuns(g.c + row * g.c_row + column, rows, columns, g.c_row);
}

// What to prefetch: the weights of the next pass of a block, or of the next block of columns.
HWY_INLINE Ahead WeightsAhead(const GemmOperands& g, int64_t first, int64_t terms, int64_t tile,
                              int64_t tiles, int64_t panel, int64_t panels) {
  if (g.b_panels == nullptr || g.b_panels->form != WeightForm::kDense) return {};
  const int64_t next = first + terms < g.k ? first + terms : 0;
  if (next == 0) panel += panels;
  if (panel * kPanelColumns >= g.n) return {};
  const int64_t depth = HWY_MIN(g.k - next, EvenPart(g.k, kBlockDepth));
  return AheadOf(g.b_panels->halves.data() + (panel * g.k + next) * kPanelColumns,
                 depth * kPanelColumns, tile, tiles, terms);
}

// Computes c[row .. row + rows, column .. column + columns]. `column` must be a multiple of 48.
HWY_INLINE void MultiplyBlock(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                              int64_t columns) {
  MultiplyPanels(
      rows, columns, g.k, EvenPart(g.k, kBlockDepth),
      [&](int64_t first, int64_t depth, float* b)
          HWY_ATTR { PackColumns(g, first, depth, column, columns, b); },
      [&](int64_t i, int64_t height, int64_t first, int64_t depth, float* a)
          HWY_ATTR { PackRows(g, row + i, height, first, depth, a); },
      [&](int64_t i, int64_t height, int64_t j, int64_t width)
          HWY_ATTR { return PlaceTile(g, row + i, height, column + j, width); },
      [&](const float* tile, int64_t i, int64_t height, int64_t j, int64_t width) HWY_ATTR {
        if (tile != nullptr) StoreTile(g, tile, row + i, height, column + j, width);
        if (j + width == columns) FinishRows(g, row + i, height, column, columns);
      },
      [&](int64_t first, int64_t terms, int64_t i, int64_t j) HWY_ATTR {
        return WeightsAhead(g, first, terms, i / kTileRows, CeilDiv(rows, kTileRows),
                            (column + j) / kPanelColumns, CeilDiv(columns, kPanelColumns));
      });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
