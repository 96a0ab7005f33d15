// math/gemm/kernel-inl.h: the multiply-accumulate loop of gemm.cc and conv.cc. Internal.
//
// Computes C (rows x columns) += A (rows x depth) * B (depth x columns). Operands are packed,
// except that B may also be read in place:
//   A: panels of 4 rows, [panel][depth][4]; broadcast element by element;
//   B: panels of 48 columns, [panel][depth][48]; read as vectors;
//   C: tiles of 8 x 48 floats.
// A tile of 8 x 48 fits the 32 registers of AVX-512: 24 sums, 3 vectors of B, one of A. Other
// instruction sets compute the same tile in parts. So packed data is the same for every instruction
// set, and the sum of an element is always in the order of depth.
#if defined(ANEMONE_MATH_GEMM_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_KERNEL_INL_H_
#undef ANEMONE_MATH_GEMM_KERNEL_INL_H_
#else
#define ANEMONE_MATH_GEMM_KERNEL_INL_H_
#endif

#include "hwy/cache_control.h"
#include "math/core/scratch.h"
#include "math/core/simd-inl.h"
#include "math/gemm/panels.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Computing two panels of rows at once needs 32 registers.
#undef ANEMONE_MATH_WIDE_TILE
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define ANEMONE_MATH_WIDE_TILE 1
#else
#define ANEMONE_MATH_WIDE_TILE 0
#endif

HWY_INLINE VF LoadColumns(const float* b) { return hn::LoadU(DF(), b); }
HWY_INLINE VF LoadColumns(const Half* b) { return LoadHalf(b); }

// TermOf() returns the columns of B for one term. B is a packed panel,
template <class T>
HWY_INLINE const T* TermOf(const T* panel, int64_t term) {
  return panel + term * kPanelColumns;
}
// columns of planes, where each term is a plane of `step` elements,
struct PlaneColumns {
  const Half* first;
  int64_t step;

  PlaneColumns operator+(int64_t columns) const { return {first + columns, step}; }
};
HWY_INLINE const Half* TermOf(const PlaneColumns& b, int64_t term) {
  return b.first + term * b.step;
}
// the same, but each term is also written to a packed panel when it is read,
struct KeptColumns {
  PlaneColumns from;
  float* panel;

  KeptColumns operator+(int64_t columns) const { return {from + columns, panel + columns}; }
};
struct KeptTerm {
  const Half* from;
  float* to;

  KeptTerm operator+(int64_t columns) const { return {from + columns, to + columns}; }
};
HWY_INLINE KeptTerm TermOf(const KeptColumns& b, int64_t term) {
  return {TermOf(b.from, term), b.panel + term * kPanelColumns};
}
HWY_INLINE VF LoadColumns(const KeptTerm& term) {
  const VF x = LoadHalf(term.from);
  hn::StoreU(x, DF(), term.to);
  return x;
}
// or unpacked columns, where term k is steps[k] elements after `first`.
template <class T>
struct UnpackedColumns {
  const T* first;
  const int64_t* steps;

  UnpackedColumns operator+(int64_t columns) const { return {first + columns, steps}; }
};
template <class T>
HWY_INLINE const T* TermOf(const UnpackedColumns<T>& b, int64_t term) {
  return b.first + b.steps[term];
}

// The destination of the sums of a tile is a FloatTile or a HalfTile. Store<true>() writes a block
// of sums that lies inside (Holds()), Store<false>() one that extends beyond the tile.
//
// FloatTile: floats, in rows `step` apart. The next pass adds to rows kPanelColumns apart.
struct FloatTile {
  float* to;
  int64_t step = kPanelColumns;

  FloatTile From(int64_t row, int64_t column) const { return {to + row * step + column, step}; }
  bool Holds(int64_t, int64_t) const { return true; }
  template <bool kWhole, int kRows, int kVectors>
  HWY_INLINE void Store(const VF (&sums)[kRows][kVectors]) const {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(sums[r][v], DF(), to + r * step + v * kLanes);
      }
    }
  }
};
// HalfTile: the results. Adds a bias per row or per column (or none), clamps to limits (or null)
// and rounds.
struct HalfTile {
  Half* to = nullptr;
  int64_t row_step = 0;
  const float* row_bias = nullptr;
  const float* column_bias = nullptr;
  int64_t rows = 0, columns = 0;
  const Limits* limits = nullptr;

  HalfTile From(int64_t row, int64_t column) const {
    return {to + row * row_step + column,
            row_step,
            row_bias == nullptr ? nullptr : row_bias + row,
            column_bias == nullptr ? nullptr : column_bias + column,
            rows - row,
            columns - column,
            limits};
  }
  bool Holds(int64_t of_rows, int64_t of_columns) const {
    return of_rows <= rows && of_columns <= columns;
  }
  template <bool kWhole, int kRows, int kVectors>
  HWY_INLINE void Store(VF (&sums)[kRows][kVectors]) const {
    const auto change = [&](const auto& changed) HWY_ATTR {
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        HWY_UNROLL(3)
        for (int v = 0; v < kVectors; ++v) sums[r][v] = changed(r, v);
      }
    };
    const auto columns_of = [&](int v) { return kWhole ? kLanes : columns - v * kLanes; };
    if (row_bias != nullptr) {
      change([&](int r, int v) HWY_ATTR {
        const int64_t row = kWhole ? r : HWY_MIN(r, rows - 1);
        return hn::Add(sums[r][v], hn::Set(DF(), row_bias[row]));
      });
    }
    if (column_bias != nullptr) {
      change([&](int r, int v) HWY_ATTR {
        return hn::Add(sums[r][v], LoadFloatUpTo(column_bias + v * kLanes, columns_of(v)));
      });
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) LimitSums(limits, sums[r]);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      if (!kWhole && r >= rows) return;
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        Half* const at = to + r * row_step + v * kLanes;
        const int64_t rest = columns_of(v);
        rest >= kLanes ? StoreHalf(sums[r][v], at) : StoreHalfN(sums[r][v], at, rest);
      }
    }
  }
};

// Data that is read after a tile, to be prefetched while the tile is computed: `step` elements per
// term, beginning at `from`. This matters for the weights of models larger than the caches.
struct Ahead {
  const Half* from = nullptr;
  int64_t step = 0;
};

// Prefetches part `part` of `parts` equal parts of `count` elements during a tile of `terms` terms.
HWY_INLINE Ahead AheadOf(const Half* from, int64_t count, int64_t part, int64_t parts,
                         int64_t terms) {
  return {from + part * count / parts, CeilDiv(count, parts * HWY_MAX(terms, 1))};
}

// Computes kRows rows of kVectors vectors, with all sums in registers. `a_step` is the distance
// between panels of A. `so_far` has earlier sums in the layout of a FloatTile, or is null.
template <int kRows, int kVectors, class B, class To>
HWY_INLINE void RegisterTile(int64_t depth, const float* HWY_RESTRICT a, int64_t a_step, B b,
                             const float* so_far, const To& to, Ahead ahead) {
  const DF df;
  VF sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] =
          so_far == nullptr ? hn::Zero(df) : hn::LoadU(df, so_far + r * kPanelColumns + v * kLanes);
    }
  }
  const float* HWY_RESTRICT lower = a + a_step;
  for (int64_t k = 0; k < depth; ++k) {
    VF x[kVectors];
    hwy::Prefetch(ahead.from);
    ahead.from += ahead.step;
    const auto columns = TermOf(b, k);
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) x[v] = LoadColumns(columns + v * kLanes);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const VF w = hn::Set(df, (r < kPanelRows ? a : lower)[r % kPanelRows]);
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(w, x[v], sum[r][v]);
    }
    a += kPanelRows;
    lower += kPanelRows;
  }
  if (to.Holds(kRows, kVectors * kLanes)) {
    to.template Store<true>(sum);
  } else {
    to.template Store<false>(sum);
  }
}

template <int kRows, class B, class To>
HWY_INLINE void TileColumns(int64_t depth, const float* a, int64_t a_step, B b, int64_t columns,
                            const float* so_far, const To& to, Ahead ahead) {
  const auto from = [&](int64_t j) { return so_far == nullptr ? nullptr : so_far + j; };
  int64_t j = 0;
  for (; columns - j > 2 * kLanes; j += 3 * kLanes) {
    RegisterTile<kRows, 3>(depth, a, a_step, b + j, from(j), to.From(0, j), ahead);
  }
  if (columns - j > kLanes) {
    RegisterTile<kRows, 2>(depth, a, a_step, b + j, from(j), to.From(0, j), ahead);
  } else if (columns > j) {
    RegisterTile<kRows, 1>(depth, a, a_step, b + j, from(j), to.From(0, j), ahead);
  }
}

// Computes one tile: at most 8 rows of A (two panels, `a_step` apart) times the first `columns` of
// a panel of B, added to `so_far` unless it is null. A FloatTile is written in whole vectors.
template <class B, class To>
HWY_NOINLINE void MultiplyTile(int64_t depth, const float* a, int64_t a_step, int64_t rows, B b,
                               int64_t columns, const float* so_far, const To& to, Ahead ahead) {
  if constexpr (ANEMONE_MATH_WIDE_TILE) {
    if (rows > kPanelRows + 1) {
      return TileColumns<8>(depth, a, a_step, b, columns, so_far, to, ahead);
    }
  }
  const auto panel = [&](int64_t height, const float* from, const float* before,
                         const To& into) HWY_ATTR {
    if (height == 1) return TileColumns<1>(depth, from, a_step, b, columns, before, into, ahead);
    TileColumns<4>(depth, from, a_step, b, columns, before, into, ahead);
  };
  panel(rows, a, so_far, to);
  if (rows <= kPanelRows) return;
  if (so_far != nullptr) so_far += kPanelRows * kPanelColumns;
  panel(rows - kPanelRows, a + a_step, so_far, to.From(kPanelRows, 0));
}

// The same with a FloatTile, which is added to if `accumulate`.
template <class B>
HWY_INLINE void AddTile(int64_t depth, const float* a, int64_t a_step, int64_t rows, B b,
                        int64_t columns, float* tile, bool accumulate, Ahead ahead = {}) {
  MultiplyTile(depth, a, a_step, rows, b, columns, accumulate ? tile : nullptr, FloatTile{tile},
               ahead);
}

// The columns of the next tile if `rest` are left. Four vectors are two tiles of two, because a
// tile of one vector loads too much for each product.
HWY_INLINE int64_t TileWidth(int64_t rest) {
  return rest > 3 * kLanes && rest <= 4 * kLanes ? 2 * kLanes : HWY_MIN(rest, 3 * kLanes);
}

// Adds the biases to `count` sums of one row of a tile, rounds them and writes them to `to`, `step`
// elements apart.
HWY_INLINE void StoreSums(const float* sums, const float* bias, float bias_for_all, int64_t count,
                          Half* to, int64_t step) {
  const DF df;
  const VF same = hn::Set(df, bias_for_all);
  HWY_ALIGN Half row[kPanelColumns + kLanes];
  Half* rounded = step == 1 ? to : row;
  for (int64_t j = 0; j < count; j += kLanes) {
    const int64_t rest = count - j;
    VF x = hn::Add(hn::LoadU(df, sums + j), same);
    if (bias != nullptr) x = hn::Add(x, LoadFloatUpTo(bias + j, rest));
    if (rest >= kLanes || step != 1) {
      StoreHalf(x, rounded + j);
    } else {
      StoreHalfN(x, rounded + j, rest);
    }
  }
  if (step == 1) return;
  for (int64_t j = 0; j < count; ++j) to[j * step] = row[j];
}

// Computes C = A * B in passes of at most `depth_step` terms. Each pass keeps its packed B in the
// second-level cache and eight rows of A in the first-level cache. The caller provides:
//   pack_b(first, depth, b): packs terms [first, first + depth) of all columns as
//     [column / 48][depth][48];
//   pack_a(row, rows, first, depth, a): packs at most 8 rows as [row / 4][depth][4];
//   place(row, rows, column, columns): returns the HalfTile to write, or an empty one;
//   store(tile, row, rows, column, columns): called for each finished tile. `tile` has the sums,
//     48 floats per row, or is null if place() returned a tile;
//   ahead(first, terms, row, column): returns what to prefetch during this tile of this pass.
// pack_a and pack_b may write a vector past the end, and store may read a vector past the end.
template <class PackB, class PackA, class Place, class Store, class Fetch>
HWY_INLINE void MultiplyPanels(int64_t rows, int64_t columns, int64_t depth, int64_t depth_step,
                               const PackB& pack_b, const PackA& pack_a, const Place& place,
                               const Store& store, const Fetch& ahead) {
  const int64_t column_panels = CeilDiv(columns, kPanelColumns);
  const int64_t row_tiles = CeilDiv(rows, kTileRows);
  const int64_t tile_step = depth <= depth_step ? 0 : kTileSize;  // one pass reuses one tile
  float* b = ThreadScratch<float>(ScratchUse::kPanelB,
                                  column_panels * kPanelColumns * depth_step + kLanes);
  float* a = ThreadScratch<float>(ScratchUse::kPanelA, kTileRows * depth_step + kLanes);
  float* c = ThreadScratch<float>(ScratchUse::kTile,
                                  row_tiles * column_panels * tile_step + kTileSize + kLanes);
  int64_t first = 0;
  do {
    const int64_t terms = HWY_MIN(depth - first, depth_step);
    pack_b(first, terms, b);
    float* tile = c;
    for (int64_t row = 0; row < rows; row += kTileRows) {
      const int64_t height = HWY_MIN(rows - row, kTileRows);
      pack_a(row, height, first, terms, a);
      for (int64_t column = 0; column < columns; column += kPanelColumns, tile += tile_step) {
        const int64_t width = HWY_MIN(columns - column, kPanelColumns);
        const bool last = first + terms == depth;
        using To = decltype(place(row, height, column, width));
        const To finished = last ? place(row, height, column, width) : To();
        const float* panel = b + column * terms;
        if (finished.to != nullptr) {
          MultiplyTile(terms, a, terms * kPanelRows, height, panel, width,
                       first == 0 ? nullptr : tile, finished, ahead(first, terms, row, column));
        } else {
          AddTile(terms, a, terms * kPanelRows, height, panel, width, tile, first != 0,
                  ahead(first, terms, row, column));
        }
        if (last) store(finished.to == nullptr ? tile : nullptr, row, height, column, width);
      }
    }
    first += terms;
  } while (first < depth);
}

// The same for few rows and for columns [begin, end), which may begin and end within panels. All of
// A is packed once per pass, and B is read one panel at a time.
//   pack_a(first, depth, a): packs all rows as [row / 4][depth][4], maybe whole vectors of rows;
//   read_b(panel, first, depth, b): returns [depth][48], either as stored or widened into b.
template <class PackA, class ReadB, class Store, class Fetch>
HWY_INLINE void MultiplyFewRows(int64_t rows, int64_t begin, int64_t end, int64_t depth,
                                int64_t depth_step, const PackA& pack_a, const ReadB& read_b,
                                const Store& store, const Fetch& ahead) {
  const int64_t column_panels = CeilDiv(end, kPanelColumns) - begin / kPanelColumns;
  const int64_t row_tiles = CeilDiv(rows, kTileRows);
  const int64_t tile_step = depth <= depth_step ? 0 : kTileSize;
  float* a = ThreadScratch<float>(ScratchUse::kPanelA,
                                  RoundUp(rows, HWY_MAX(kTileRows, kLanes)) * depth_step + kLanes);
  float* b = ThreadScratch<float>(ScratchUse::kPanelB, kPanelColumns * depth_step + kLanes);
  float* c =
      ThreadScratch<float>(ScratchUse::kTile, row_tiles * column_panels * tile_step + kTileSize);
  int64_t first = 0;
  do {
    const int64_t terms = HWY_MIN(depth - first, depth_step);
    pack_a(first, terms, a);
    float* tile = c;
    for (int64_t column = begin; column < end;) {
      const int64_t inside = column % kPanelColumns;
      const int64_t width = HWY_MIN(end - column, kPanelColumns - inside);
      const auto* panel = read_b(column / kPanelColumns, first, terms, b) + inside;
      for (int64_t row = 0; row < rows; row += kTileRows, tile += tile_step) {
        const int64_t height = HWY_MIN(rows - row, kTileRows);
        AddTile(terms, a + row * terms, terms * kPanelRows, height, panel, width, tile, first != 0,
                ahead(first, terms, row, column));
        if (first + terms == depth) store(tile, row, height, column, width);
      }
      column += width;
    }
    first += terms;
  } while (first < depth);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
