// Products of a matrix (A) and a packed matrix (B) in blocks of strassen-inl.h. A task computes
// some rows and columns. In each pass it packs all its rows, then one pair of columns at a time.
#include <algorithm>
#include <cstdint>

#include "math/gemm/gemm_operands.h"
#include "math/gemm/strassen.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/gemm/strassen_gemm.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/gemm/gemm-inl.h"
#include "math/gemm/strassen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The largest magnitude of `count` elements, as bits.
HWY_INLINE uint16_t LargestOf(const Half* from, int64_t count) {
  const hn::ScalableTag<uint16_t> d;
  const auto* bits = reinterpret_cast<const uint16_t*>(from);
  constexpr int64_t kStep = hn::MaxLanes(d);
  auto most = hn::Zero(d);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    most = hn::Max(most, hn::And(hn::LoadU(d, bits + i), hn::Set(d, 0x7fff)));
  }
  uint16_t largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; i < count; ++i) largest = HWY_MAX(largest, bits[i] & 0x7fff);
  return largest;
}

// Packs terms [first, first + terms) of rows [row, row + rows), at most a group, with the sums S1
// to S4. Returns whether the group is even.
HWY_INLINE bool PackGroup(const GemmOperands& g, int64_t row, int64_t rows, int64_t first,
                          int64_t terms, bool with_a21, const Quarters to) {
  uint16_t largest[kGroupRows];
  for (int64_t i = 0; i < rows; ++i) {
    largest[i] = LargestOf(g.a + (row + i) * g.a_row + first, terms);
  }
  const bool even = rows == kGroupRows && AreEven(largest, rows, kMostInputSpread);
  const int64_t half = terms / 2;
  constexpr int64_t kChunk = 64;  // terms at a time, so that they stay in the first-level cache
  HWY_ALIGN float panels[2][kGroupRows * kChunk];
  for (int64_t k = 0; k < half; k += kChunk) {
    const int64_t count = HWY_MIN(half - k, kChunk);
    for (int64_t i : {0, 1}) PackRows(g, row, rows, first + i * half + k, count, panels[i]);
    const int64_t size = count * kPanelRows;
    for (int64_t panel = 0; panel < HWY_MIN(CeilDiv(rows, kPanelRows), 2); ++panel) {
      const bool has_lower = rows > kTileRows + panel * kPanelRows;
      for (int64_t i = panel * size; i < (panel + 1) * size; i += kLanes) {
        const auto load = [&](int h) HWY_ATTR { return hn::LoadU(DF(), panels[h] + i); };
        const auto load_lower = [&](int h) HWY_ATTR {
          return has_lower ? hn::LoadU(DF(), panels[h] + 2 * size + i) : hn::Zero(DF());
        };
        PutRows({load(0), load(1), load_lower(0), load_lower(1)}, with_a21 || !even, to,
                (panel * half + k) * kPanelRows + i - panel * size);
      }
    }
  }
  return even;
}

void ComputeStrassenGemm(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                         int64_t columns) {
  // The epilogue is applied to this many pairs at a time, while they are in the cache.
  constexpr int64_t kFinishedPairs = 4;
  const int64_t step = StrassenTerms(g.k);
  const int64_t groups = CeilDiv(rows, kGroupRows), pairs = CeilDiv(columns, kPairColumns);
  const int64_t kept = g.k > step ? 4 * kTileSize : 0;  // sums of a block between passes
  float* a =
      ThreadScratch<float>(ScratchUse::kPanelA, groups * Quarters::FloatsOf(step, kTileRows));
  float* b = ThreadScratch<float>(ScratchUse::kPanelB, Quarters::FloatsOf(step, kPanelColumns));
  float* tiles = ThreadScratch<float>(ScratchUse::kTile, 3 * kTileSize + groups * pairs * kept);
  uint8_t* even_rows = ThreadScratch<uint8_t>(ScratchUse::kEven, groups);
  for (int64_t first = 0; first < g.k; first += step) {
    const int64_t terms = HWY_MIN(step, g.k - first);
    const bool is_last = first + terms == g.k;
    const uint8_t* even_columns = g.even_columns + first / step * CeilDiv(g.n, kPairColumns);
    const uint8_t* end = even_columns + CeilDiv(g.n, kPairColumns);
    const bool all_columns = std::all_of(even_columns, end, [](uint8_t e) { return e; });
    Quarters group{a, Quarters::SizeOf(terms, kTileRows)};
    for (int64_t i = 0; i < groups; ++i) {
      const int64_t height = HWY_MIN(rows - i * kGroupRows, kGroupRows);
      even_rows[i] =
          PackGroup(g, row + i * kGroupRows, height, first, terms, !all_columns, group) ? 1 : 0;
      group.data += Quarters::FloatsOf(terms, kTileRows);
    }
    const bool all_rows = std::all_of(even_rows, even_rows + groups, [](uint8_t e) { return e; });
    const Quarters pair{b, Quarters::SizeOf(terms, kPanelColumns)};
    float* sums = tiles + 3 * kTileSize;
    int64_t finished = 0;
    for (int64_t p = 0; p < pairs; ++p) {
      const int64_t at = column + p * kPairColumns;
      const int64_t width = HWY_MIN(column + columns - at, kPairColumns);
      const bool even = even_columns[at / kPairColumns] != 0;
      const Half* left = g.b_panels->halves.data() + at * g.k + first * kPanelColumns;
      const auto pack = width > kPanelColumns ? PackPair<true> : PackPair<false>;
      pack(left, left + g.k * kPanelColumns, kPanelColumns, terms, width, even, !all_rows, pair);
      group.data = a;
      for (int64_t i = 0; i < groups; ++i, sums += kept) {
        const int64_t top = row + i * kGroupRows;
        const auto place = [&](int64_t r, int64_t height, int64_t c, int64_t w)
                               HWY_ATTR { return PlaceTile(g, top + r, height, at + c, w); };
        Block<decltype(place)> block{.rows = HWY_MIN(row + rows - top, kGroupRows),
                                     .columns = width,
                                     .half = terms / 2,
                                     .a = group,
                                     .b = pair,
                                     .sums = sums,
                                     .is_first = first == 0,
                                     .is_last = is_last,
                                     .tiles = tiles,
                                     .ahead = {},
                                     .place = place};
        for (int64_t q = 0; q < 4 && at + 2 * kPairColumns <= g.n; ++q) {
          const Half* next =
              left + (2 + q / 2) * g.k * kPanelColumns + q % 2 * (terms / 2) * kPanelColumns;
          block.ahead[q] = AheadOf(next, terms / 2 * kPanelColumns, i, groups, terms / 2);
        }
        block.Multiply(even && even_rows[i] != 0);
        group.data += Quarters::FloatsOf(terms, kTileRows);
      }
      if (!is_last || (p + 1 - finished < kFinishedPairs && p + 1 < pairs)) continue;
      const int64_t begin = column + finished * kPairColumns;
      FinishRows(g, row, rows, begin, at + width - begin);
      finished = p + 1;
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeStrassenGemm);

bool StrassenPays(const GemmOperands& g) {
  if (g.even_columns == nullptr || g.c_column != 1 || g.a_column != 1) return false;
  // Costs in cycles, for one multiply-add of 16 lanes per cycle (bench/math_bench.cc).
  constexpr int64_t kBlock = 700, kTerm = 40;
  const int64_t groups = g.m / kGroupRows, pairs = g.n / kPairColumns;
  const int64_t passes = CeilDiv(g.k, StrassenTerms(g.k));
  const int64_t saved = kTileRows * kPanelColumns / 16 * g.k / 2 * groups * pairs;
  return saved > pairs * (groups * passes * kBlock + g.k * kTerm);
}

Cut StrassenCut(const GemmOperands& g, int64_t copies, int64_t threads) {
  constexpr int64_t kMostRows = 14 * kGroupRows;
  // Sums that are kept for another pass take at most a megabyte.
  constexpr int64_t kMostSums = 1 << 18;
  const bool waits = g.k > StrassenTerms(g.k);
  const int64_t most_columns =
      waits ? kMostSums / std::min(RoundUp(g.m, kGroupRows), kMostRows) : g.n;
  return CutBlocks({g.m, g.n}, {kMostRows, RoundUp(most_columns, kPairColumns)},
                   {kGroupRows, kPairColumns}, {.b_rows = 5, .a_columns = 12}, copies, threads);
}

void MultiplyByStrassen(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                        int64_t columns) {
  HWY_DYNAMIC_DISPATCH(ComputeStrassenGemm)(g, row, rows, column, columns);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
