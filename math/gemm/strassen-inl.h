// math/gemm/strassen-inl.h: multiplies blocks of C = A * B by seven products of quarters instead of
// eight (Strassen, "Gaussian Elimination is not Optimal", 1969, in Winograd's form). Internal.
//
// A block is a group of 16 rows of A times a pair of panels of 48 columns of B, for the terms of a
// pass. Its quarters have 8 rows, 48 columns and half the terms:
//   S1 = A21 + A22   S2 = S1 - A11   S3 = A11 - A21   S4 = A12 - S2
//   T1 = B12 - B11   T2 = B22 - T1   T3 = B22 - B12   T4 = B21 - T2
//   U = A11 B11 + S2 T2   V = U + S3 T3   W = S1 T1
//   C11 = A11 B11 + A12 B21   C12 = U + W + S4 B22
//   C21 = V + A22 T4          C22 = V + W
// S and T are computed when A and B are packed, once for many blocks. U, V and W are tiles in the
// first-level cache.
//
// The fp32 sums of a block have errors of about 1e-6 of the largest products of the block, rather
// than of their own products. That is far below the rounding of a result unless the result is small
// compared with the others. A result could be small because its row or column is small. Therefore a
// block in which the largest magnitude of one row (or column) is much below that of another, or
// that contains a number that is not finite, is multiplied in the ordinary way, with eight
// products. So are incomplete groups, and pairs with too few columns. Blocks and passes are counted
// from the first row, column and term of the matrices, so results do not depend on the division
// into tasks.
#if defined(ANEMONE_MATH_GEMM_STRASSEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_STRASSEN_INL_H_
#undef ANEMONE_MATH_GEMM_STRASSEN_INL_H_
#else
#define ANEMONE_MATH_GEMM_STRASSEN_INL_H_
#endif

#include "math/gemm/kernel-inl.h"
#include "math/gemm/strassen.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// The slots of a group of rows, [2 panels][half the terms][4] each, and of a pair of columns, [half
// the terms][48] each. The last slot is for blocks that are multiplied with eight products.
enum RowSlot { kA11, kA12, kA22, kS1, kS2, kS3, kS4, kA21 };
enum ColumnSlot { kB11, kB21, kB22, kT1, kT2, kT3, kT4, kB12 };

struct Quarters {
  float* data;
  int64_t size;  // of a slot

  // A few floats more than needed, so that the slots use different sets of a cache.
  static int64_t SizeOf(int64_t terms, int64_t width) { return terms / 2 * width + 16; }
  static int64_t FloatsOf(int64_t terms, int64_t width) { return 8 * SizeOf(terms, width); }
  const float* operator[](int slot) const { return data + slot * size; }
  void Put(VF x, int slot, int64_t at) const { hn::StoreU(x, DF(), data + slot * size + at); }
};

// Writes elements [at, at + kLanes) of a group's slots. `a` holds these elements of the quarters
// A11, A12, A21, A22.
HWY_INLINE void PutRows(const VF (&a)[4], bool with_a21, const Quarters to, int64_t at) {
  const VF s1 = hn::Add(a[2], a[3]), s2 = hn::Sub(s1, a[0]);
  to.Put(a[0], kA11, at);
  to.Put(a[1], kA12, at);
  to.Put(a[3], kA22, at);
  to.Put(s1, kS1, at);
  to.Put(s2, kS2, at);
  to.Put(hn::Sub(a[0], a[2]), kS3, at);
  to.Put(hn::Sub(a[1], s2), kS4, at);
  if (with_a21) to.Put(a[2], kA21, at);
}

// Packs the first `width` columns of a pair of panels, followed by zeros. `left` and `right` are
// its panels, with `terms` rows of Halfs `step` apart. Writes T1 to T4 if `is_even`, and B12 if not
// `is_even` or if `with_b12`.
template <bool kWhole>
HWY_NOINLINE void PackPair(const Half* left, const Half* right, int64_t step, int64_t terms,
                           int64_t width, bool is_even, bool with_b12, const Quarters to) {
  const auto load = [&](const Half* from, int64_t j, int64_t columns) HWY_ATTR {
    if (kWhole || columns - j >= kLanes) return LoadHalf(from + j);
    return columns > j ? LoadHalfN(from + j, columns - j) : hn::Zero(DF());
  };
  const int64_t down = terms / 2 * step, rest = width - kPanelColumns;
  for (int64_t at = 0; at < terms / 2 * kPanelColumns; left += step, right += step) {
    for (int64_t j = 0; j < kPanelColumns; j += kLanes, at += kLanes) {
      const VF b11 = load(left, j, width), b21 = load(left + down, j, width);
      const VF b12 = load(right, j, rest), b22 = load(right + down, j, rest);
      to.Put(b11, kB11, at);
      to.Put(b21, kB21, at);
      to.Put(b22, kB22, at);
      if (with_b12 || !is_even) to.Put(b12, kB12, at);
      if (!is_even) continue;
      const VF t1 = hn::Sub(b12, b11), t2 = hn::Sub(b22, t1);
      to.Put(t1, kT1, at);
      to.Put(t2, kT2, at);
      to.Put(hn::Sub(b22, b12), kT3, at);
      to.Put(hn::Sub(b21, t2), kT4, at);
    }
  }
}

// tile += other
inline HWY_NOINLINE void AddTo(float* HWY_RESTRICT tile, const float* HWY_RESTRICT other) {
  for (int64_t i = 0; i < kTileSize; i += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(DF(), tile + i), hn::LoadU(DF(), other + i)), DF(), tile + i);
  }
}

// u += w, w += v
inline HWY_NOINLINE void AddProduct(float* HWY_RESTRICT u, const float* HWY_RESTRICT v,
                                    float* HWY_RESTRICT w) {
  const DF df;
  for (int64_t i = 0; i < kTileSize; i += kLanes) {
    const VF product = hn::LoadU(df, w + i);
    hn::StoreU(hn::Add(hn::LoadU(df, u + i), product), df, u + i);
    hn::StoreU(hn::Add(hn::LoadU(df, v + i), product), df, w + i);
  }
}

#if HWY_TARGET == HWY_AVX3
// The last columns, if they are so few, as 4 of 14 x 14 positions, would use 4 of 16 lanes. Their
// lanes are 4 terms of 4 rows instead: a vector of A times 4 terms of one column.
constexpr int64_t kFewColumns = 4;

// The sums of 8 rows of `terms` terms, a multiple of 4, in the layout of a FloatTile.
HWY_INLINE void SumFewColumns(int64_t terms, const float* HWY_RESTRICT a, int64_t a_step,
                              const float* HWY_RESTRICT b, const float* so_far, float* to,
                              Ahead ahead) {
  const DF df;
  const hn::Half<DF> two_terms;
  const hn::Half<decltype(two_terms)> one_term;
  VF sum[2][kFewColumns];
  for (auto& panel : sum) {
    for (VF& column : panel) column = hn::Zero(df);
  }
  for (int64_t k = 0; k < terms; k += 4, b += 4 * kPanelColumns) {
    const auto columns_of = [&](int64_t term) HWY_ATTR {
      hwy::Prefetch(ahead.from);
      ahead.from += ahead.step;
      return hn::LoadU(one_term, b + term * kPanelColumns);
    };
    const auto first = hn::Combine(two_terms, columns_of(1), columns_of(0));
    const auto last = hn::Combine(two_terms, columns_of(3), columns_of(2));
    const VF x = hn::Combine(df, last, first);
    const VF columns[] = {hn::Broadcast<0>(x), hn::Broadcast<1>(x), hn::Broadcast<2>(x),
                          hn::Broadcast<3>(x)};
    HWY_UNROLL(2)
    for (int64_t p = 0; p < 2; ++p) {
      const VF rows = hn::LoadU(df, a + p * a_step + k * kPanelRows);
      HWY_UNROLL(4)
      for (int64_t j = 0; j < kFewColumns; ++j) {
        sum[p][j] = hn::MulAdd(rows, columns[j], sum[p][j]);
      }
    }
  }
  for (int64_t p = 0; p < 2; ++p) {
    for (int64_t j = 0; j < kFewColumns; ++j) {
      const auto pairs = hn::Add(hn::LowerHalf(sum[p][j]), hn::UpperHalf(two_terms, sum[p][j]));
      HWY_ALIGN float rows[kPanelRows];
      hn::Store(hn::Add(hn::LowerHalf(pairs), hn::UpperHalf(one_term, pairs)), one_term, rows);
      for (int64_t r = 0; r < kPanelRows; ++r) {
        const int64_t at = (p * kPanelRows + r) * kPanelColumns + j;
        to[at] = so_far == nullptr ? rows[r] : so_far[at] + rows[r];
      }
    }
  }
}

template <class To>
HWY_NOINLINE void MultiplyFewColumns(int64_t terms, const float* a, int64_t a_step, const float* b,
                                     const float* so_far, const To& to, Ahead ahead) {
  HWY_ALIGN float sums[kTileSize] = {};
  SumFewColumns(terms, a, a_step, b, so_far, sums, ahead);
  RegisterTile<8, 1>(0, a, a_step, b, sums, to, {});
}
#endif

// MultiplyTile() for operands of a block.
template <class To>
HWY_INLINE void MultiplyPart(int64_t terms, const float* x, int64_t step, int64_t rows,
                             const float* y, int64_t columns, const float* so_far, const To& to,
                             Ahead ahead) {
#if HWY_TARGET == HWY_AVX3
  if (rows == kTileRows && columns <= kFewColumns) {
    return MultiplyFewColumns(terms, x, step, y, so_far, to, ahead);
  }
#endif
  MultiplyTile(terms, x, step, rows, y, columns, so_far, to, ahead);
}

// One block. `place(row, rows, column, columns)` returns the HalfTile of the tile at that row and
// column of the block.
template <class Place>
struct Block {
  int64_t rows, columns;
  int64_t half;  // half of the number of terms
  Quarters a, b;
  float* sums;             // [4] tiles: the sums of the passes so far
  bool is_first, is_last;  // whether this is the first or last pass
  float* tiles;            // [3] tiles of scratch
  Ahead ahead[4];
  Place place;

  void Product(const float* x, const float* y, int64_t height, int64_t width, const float* so_far,
               float* to, Ahead next = {}) const {
    MultiplyPart(half, x, half * kPanelRows, height, y, width, so_far, FloatTile{to}, next);
  }

  // Prefetches the columns that are read next, one cache line per term.
  Ahead Soon(ColumnSlot slot) const {
    return {reinterpret_cast<const Half*>(b[slot]), kLineBytes / int64_t{sizeof(Half)}};
  }

  // Finishes tile (i, j), which is `so_far` + x * y, over `terms` terms.
  void Finish(int64_t i, int64_t j, const float* so_far, int64_t terms, const float* x,
              const float* y) const {
    const int64_t row = i * kTileRows, height = HWY_MIN(rows - row, kTileRows);
    const int64_t column = j * kPanelColumns, width = HWY_MIN(columns - column, kPanelColumns);
    float* tile = sums + (2 * i + j) * kTileSize;
    const auto multiply = [&](const auto& to) HWY_ATTR {
      MultiplyPart(terms, x, half * kPanelRows, height, y, width, so_far, to, ahead[2 * i + j]);
    };
    if (!is_first) {
      AddTo(tile, so_far);
      so_far = tile;
    }
    is_last ? multiply(place(row, height, column, width)) : multiply(FloatTile{tile});
  }

  // `is_even`: magnitudes in both the group and the pair are similar enough for seven products.
  void Multiply(bool is_even) const { is_even ? MultiplySeven() : MultiplyEight(); }

 private:
  void MultiplySeven() const {
    float *u = tiles, *v = u + kTileSize, *w = v + kTileSize;
    const int64_t right = columns - kPanelColumns;
    Product(a[kA11], b[kB11], kTileRows, kPanelColumns, nullptr, u, Soon(kB21));
    Finish(0, 0, u, half, a[kA12], b[kB21]);
    Product(a[kS2], b[kT2], kTileRows, kPanelColumns, u, u, Soon(kT3));
    Product(a[kS3], b[kT3], kTileRows, kPanelColumns, u, v, Soon(kT4));
    Finish(1, 0, v, half, a[kA22], b[kT4]);
    Product(a[kS1], b[kT1], kTileRows, right, nullptr, w, ahead[3]);
    AddProduct(u, v, w);
    Finish(0, 1, u, half, a[kS4], b[kB22]);
    Finish(1, 1, w, 0, a[kA11], b[kB11]);
  }

  void MultiplyEight() const {
    constexpr RowSlot kRows[2][2] = {{kA11, kA12}, {kA21, kA22}};
    constexpr ColumnSlot kColumns[2][2] = {{kB11, kB21}, {kB12, kB22}};
    for (int64_t i = 0; i * kTileRows < rows; ++i) {
      const int64_t height = HWY_MIN(rows - i * kTileRows, kTileRows);
      for (int64_t j = 0; j * kPanelColumns < columns; ++j) {
        const int64_t width = HWY_MIN(columns - j * kPanelColumns, kPanelColumns);
        Product(a[kRows[i][0]], b[kColumns[j][0]], height, width, nullptr, tiles);
        Finish(i, j, tiles, half, a[kRows[i][1]], b[kColumns[j][1]]);
      }
    }
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
