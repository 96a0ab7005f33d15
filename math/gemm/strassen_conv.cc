// 1x1 convolutions as products of weights (A) and input (B), in blocks of strassen-inl.h. A task
// computes some of the output channels at some positions of an image. It packs the input once per
// pass, and each group of rows of the weights once per pass.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "math/conv/conv_state.h"
#include "math/core/scratch.h"
#include "math/gemm/strassen.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/gemm/strassen_conv.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/gemm/strassen-inl.h"

#ifndef ANEMONE_MATH_GEMM_STRASSEN_TASK_
#define ANEMONE_MATH_GEMM_STRASSEN_TASK_
namespace anemone::math {

// Rows [row, row + rows) and columns [column, column + columns) in one group of one image. `row`
// and `column` are at the start of a group of rows and a pair of columns.
struct StrassenTask {
  const ConvGeometry* geometry;
  const Half* weights;       // of the group: [channel / 4][depth][4]
  const uint8_t* even_rows;  // of the group: [pass][channel / 16]
  const float* bias;         // at the first channel of the group; x and y too
  const Half* x;
  Half* y;
  Epilogue epilogue;
  int64_t row, rows, column, columns;
};

}  // namespace anemone::math
#endif  // ANEMONE_MATH_GEMM_STRASSEN_TASK_

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Packs `terms` terms of a whole group of rows, with the sums S1 to S4.
HWY_NOINLINE void PackGroup(const Half* weights, int64_t depth, int64_t terms, bool with_a21,
                            const Quarters to) {
  const int64_t half = terms / 2 * kPanelRows, lower = depth * kTileRows;
  for (int64_t panel = 0; panel < 2; ++panel, weights += depth * kPanelRows) {
    for (int64_t i = 0; i < half; i += kLanes) {
      const VF quarters[] = {LoadHalf(weights + i), LoadHalf(weights + i + half),
                             LoadHalf(weights + lower + i), LoadHalf(weights + lower + i + half)};
      PutRows(quarters, with_a21, to, panel * half + i);
    }
  }
}

// Packs at most a group of rows, without the sums.
HWY_NOINLINE void PackRowsAlone(const Half* weights, int64_t depth, int64_t rows, int64_t terms,
                                const Quarters to) {
  const int64_t half = terms / 2 * kPanelRows;
  for (int64_t row = 0; row < rows; row += kPanelRows, weights += depth * kPanelRows) {
    const int64_t at = row % kTileRows / kPanelRows * half;
    for (int64_t i = 0; i < half; i += kLanes) {
      to.Put(LoadHalf(weights + i), row < kTileRows ? kA11 : kA21, at + i);
      to.Put(LoadHalf(weights + i + half), row < kTileRows ? kA12 : kA22, at + i);
    }
  }
}

// Whether the magnitudes of at most a pair of columns are similar (AreEven()).
HWY_NOINLINE bool ColumnsAreEven(const Half* x, int64_t step, int64_t terms, int64_t width) {
  const hn::CappedTag<uint16_t, 32> d;
  constexpr int64_t kStep = hn::MaxLanes(d), kVectors = kPairColumns / kStep;
  static_assert(kPairColumns % kStep == 0);
  HWY_ALIGN uint16_t largest[kPairColumns] = {};
  const auto* from = reinterpret_cast<const uint16_t*>(x);
  if (width == kPairColumns) {
    hn::Vec<decltype(d)> most[kVectors];
    for (auto& vector : most) vector = hn::Zero(d);
    for (int64_t k = 0; k < terms; ++k, from += step) {
      HWY_UNROLL(3)
      for (int64_t i = 0; i < kVectors; ++i) {
        most[i] = hn::Max(most[i], hn::And(hn::LoadU(d, from + i * kStep), hn::Set(d, 0x7fff)));
      }
    }
    for (int64_t i = 0; i < kVectors; ++i) hn::StoreU(most[i], d, largest + i * kStep);
  } else {
    for (int64_t k = 0; k < terms; ++k, from += step) {
      for (int64_t i = 0; i < width; ++i) largest[i] = HWY_MAX(largest[i], from[i] & 0x7fff);
    }
  }
  return AreEven(largest, width, kMostInputSpread);
}

// Packs the input of a task for one pass, as quarters for each pair, and writes whether each pair
// is even. Returns true if all are.
HWY_INLINE bool PackInput(const StrassenTask& t, int64_t first, int64_t terms, bool with_b12,
                          Quarters to, uint8_t* is_even) {
  const int64_t plane = t.geometry->in_h * t.geometry->in_w;
  const Half* x = t.x + first * plane + t.column;
  bool all = true;
  for (int64_t column = 0; column < t.columns; column += kPairColumns, x += kPairColumns) {
    const int64_t width = HWY_MIN(t.columns - column, kPairColumns);
    const bool even = width >= kLeastPair && ColumnsAreEven(x, plane, terms, width);
    const auto pack = width == kPairColumns ? PackPair<true> : PackPair<false>;
    pack(x, x + kPanelColumns, plane, terms, width, even, with_b12, to);
    to.data += Quarters::FloatsOf(terms, kPanelColumns);
    *is_even++ = even ? 1 : 0;
    all = all && even;
  }
  return all;
}

void ComputeStrassen(const StrassenTask& t) {
  const ConvGeometry& g = *t.geometry;
  const int64_t step = StrassenTerms(g.depth()), pairs = CeilDiv(t.columns, kPairColumns);
  const int64_t groups = CeilDiv(t.rows, kGroupRows);
  const int64_t kept = g.depth() > step ? 4 * kTileSize : 0;  // sums of a block between passes
  float* a = ThreadScratch<float>(ScratchUse::kPanelA, Quarters::FloatsOf(step, kTileRows));
  float* b =
      ThreadScratch<float>(ScratchUse::kPanelB, pairs * Quarters::FloatsOf(step, kPanelColumns));
  float* tiles = ThreadScratch<float>(ScratchUse::kTile, 3 * kTileSize + groups * pairs * kept);
  uint8_t* even_columns = ThreadScratch<uint8_t>(ScratchUse::kEven, pairs);
  for (int64_t first = 0; first < g.depth(); first += step) {
    const int64_t terms = HWY_MIN(step, g.depth() - first);
    const bool is_last = first + terms == g.depth();
    const uint8_t* even_rows =
        t.even_rows + first / step * CeilDiv(g.group_out, kGroupRows) + t.row / kGroupRows;
    const bool all_rows = std::all_of(even_rows, even_rows + groups, [](uint8_t e) { return e; });
    const Quarters rows_of_a{a, Quarters::SizeOf(terms, kTileRows)};
    const Quarters columns_of_b{b, Quarters::SizeOf(terms, kPanelColumns)};
    const bool all_columns = PackInput(t, first, terms, !all_rows, columns_of_b, even_columns);
    float* sums = tiles + 3 * kTileSize;
    for (int64_t row = 0; row < t.rows; row += kGroupRows) {
      const int64_t rows = HWY_MIN(t.rows - row, kGroupRows);
      const Half* weights = t.weights + (t.row + row) * g.depth() + first * kPanelRows;
      const bool even = even_rows[row / kGroupRows] != 0;
      if (even) {
        PackGroup(weights, g.depth(), terms, !all_columns, rows_of_a);
      } else {
        PackRowsAlone(weights, g.depth(), rows, terms, rows_of_a);
      }
      for (int64_t pair = 0; pair < pairs; ++pair, sums += kept) {
        const int64_t column = pair * kPairColumns;
        const auto place = [&](int64_t i, int64_t height, int64_t j, int64_t width) HWY_ATTR {
          const int64_t channel = t.row + row + i;
          return HalfTile{t.y + channel * g.y_plane + t.column + column + j,
                          g.y_plane,
                          t.bias + channel,
                          nullptr,
                          height,
                          width,
                          t.epilogue.limits()};
        };
        Quarters b_pair = columns_of_b;
        b_pair.data += pair * Quarters::FloatsOf(terms, kPanelColumns);
        Block<decltype(place)> block{.rows = rows,
                                     .columns = HWY_MIN(t.columns - column, kPairColumns),
                                     .half = terms / 2,
                                     .a = rows_of_a,
                                     .b = b_pair,
                                     .sums = sums,
                                     .is_first = first == 0,
                                     .is_last = is_last,
                                     .tiles = tiles,
                                     .ahead = {},
                                     .place = place};
        for (int64_t i = 0; i < 4 && row + 2 * kGroupRows <= t.rows; ++i) {
          block.ahead[i] = AheadOf(weights + (kGroupRows + i * kPanelRows) * g.depth(),
                                   terms * kPanelRows, pair, pairs, terms / 2);
        }
        block.Multiply(even && even_columns[pair] != 0);
      }
      if (!is_last) continue;
      t.epilogue.rest().FinishRuns(t.y + (t.row + row) * g.y_plane + t.column, rows, t.columns,
                                   g.y_plane);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeStrassen);

namespace {

// The number of columns in pairs. Remaining columns that are too few for a pair are computed with
// the last pair.
int64_t PairedColumns(const ConvGeometry& g) {
  return (g.positions() + kPairColumns - kLeastPair) / kPairColumns * kPairColumns;
}

}  // namespace

bool StrassenPays(const ConvGeometry& g) {
  if (!g.pointwise() || !g.dense_output() || g.depth() % 8 != 0) return false;
  // Costs in cycles, for one multiply-add of 16 lanes per cycle (bench/math_bench.cc).
  constexpr int64_t kBlock = 700, kTerm = 28, kRest = 400;
  const int64_t groups = g.group_out / kGroupRows, pairs = PairedColumns(g) / kPairColumns;
  const int64_t passes = CeilDiv(g.depth(), kBlockDepth);
  const int64_t saved = kTileRows * kPanelColumns / 16 * g.depth() / 2 * groups * pairs;
  const int64_t spent = pairs * (groups * passes * kBlock + g.depth() * kTerm) +
                        (g.positions() > pairs * kPairColumns ? groups * passes * kRest : 0);
  return saved > spent;
}

std::vector<uint8_t> EvenRows(const ConvGeometry& g, const WeightPanels& panels) {
  return EvenLines(panels, g.groups, g.group_out, kGroupRows, StrassenTerms(g.depth()),
                   kMostWeightSpread);
}

void RunStrassen(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const int64_t copies = g.batch * g.groups;
  const int64_t most_pairs = kBlockDepth * kBlockColumns / g.depth() / kPairColumns;
  const int64_t paired = PairedColumns(g), threads = ThreadCount();
  const Cut cut = CutBlocks(
      {g.group_out, paired}, {kBlockRows, std::max<int64_t>(most_pairs, 2) * kPairColumns},
      {kGroupRows, kPairColumns}, {.b_rows = 12, .a_columns = 7}, copies, threads);
  // With one task along the columns, or one thread, the task at the end computes the columns that
  // are not in pairs, with the weights that it has packed. Otherwise that would make the other
  // threads wait, so all tasks along the columns compute them, each for some of the rows.
  const bool divides_rest = threads > 1 && cut.by_columns > 1 && paired < g.positions();
  const int64_t panels = CeilDiv(g.group_out, kPanelRows);
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      // `copy` counts images and groups.
      const int64_t copy = task / cut.blocks(), block = task % cut.blocks();
      const int64_t group = copy % g.groups;
      const Part rows = cut.Rows(block), columns = cut.Columns(block);
      StrassenTask t;
      t.geometry = &g;
      t.weights = state.weights->panels.halves.data() + group * panels * kPanelRows * g.depth();
      const std::vector<uint8_t>& even_rows = state.weights->even_rows;
      t.even_rows = even_rows.data() + group * (even_rows.size() / g.groups);
      t.bias = state.bias.data() + group * g.group_out;
      t.x = x + copy * g.group_in * g.in_h * g.in_w;
      t.y = y + copy * g.group_out * g.y_plane;
      t.epilogue = epilogue;
      t.row = rows.first;
      t.rows = rows.size();
      t.column = columns.first;
      t.columns = (divides_rest || columns.last < paired ? columns.last : g.positions()) - t.column;
      HWY_DYNAMIC_DISPATCH(ComputeStrassen)(t);
      if (!divides_rest) continue;
      const Part rest(t.rows, kGroupRows, block % cut.by_columns, cut.by_columns);
      if (rest.size() == 0) continue;
      t.row += rest.first;
      t.rows = rest.size();
      t.column = paired;
      t.columns = g.positions() - paired;
      HWY_DYNAMIC_DISPATCH(ComputeStrassen)(t);
    }
  };
  const BlockSize largest = cut.largest();
  ParallelForItems(copies * cut.blocks(), largest.rows * largest.columns * g.depth() / 16, run);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
