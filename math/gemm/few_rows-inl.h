// math/gemm/few_rows-inl.h: the product of one row, or a few, with packed, dense weights, which are
// read in the order of memory, once for up to four rows. Internal.
#if defined(ANEMONE_MATH_GEMM_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_FEW_ROWS_INL_H_
#undef ANEMONE_MATH_GEMM_FEW_ROWS_INL_H_
#else
#define ANEMONE_MATH_GEMM_FEW_ROWS_INL_H_
#endif

#include "math/core/simd-inl.h"
#include "math/gemm/gemm_operands.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// As many vectors as their sums, whose additions wait for each other, keep the units busy. Nothing
// is prefetched: the processor follows the weights by itself, and was faster without.
constexpr int kVectorsOfRow = 6;

// Computes kCount vectors of columns of kRows rows; columns from `end` on are not stored.
template <int kRows, int kCount>
HWY_INLINE void MultiplyVectors(const RowProduct& p, int64_t row, int64_t column, int64_t end) {
  const DF df;
  const float* const a = p.a + row * p.a_step;
  const Half* from[kCount];
  VF sums[kRows][kCount];
  HWY_UNROLL(6)
  for (int v = 0; v < kCount; ++v) {
    const int64_t at = column + v * kLanes;
    from[v] = p.panels + at / kPanelColumns * kPanelColumns * p.depth + at % kPanelColumns;
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Zero(df);
  }
  for (int64_t k = 0; k < p.depth; ++k) {
    VF factors[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) factors[r] = hn::Set(df, a[r * p.a_step + k]);
    HWY_UNROLL(6)
    for (int v = 0; v < kCount; ++v) {
      const VF weights = LoadHalf(from[v] + k * kPanelColumns);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::MulAdd(factors[r], weights, sums[r][v]);
    }
  }
  HWY_UNROLL(6)
  for (int v = 0; v < kCount; ++v) {
    const int64_t at = column + v * kLanes, rest = end - at;
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      Half* const to = p.to + (row + r) * p.to_step + at;
      if (p.bias != nullptr) sums[r][v] = hn::Add(sums[r][v], LoadFloatUpTo(p.bias + at, rest));
      rest >= kLanes ? StoreHalf(sums[r][v], to) : StoreHalfN(sums[r][v], to, rest);
    }
  }
}

template <int kRows, int kCount>
HWY_INLINE void MultiplyColumns(const RowProduct& p, int64_t row, int64_t begin, int64_t end) {
  int64_t column = begin;
  for (; column + (kCount - 1) * kLanes < end; column += kCount * kLanes) {
    MultiplyVectors<kRows, kCount>(p, row, column, end);
  }
  if constexpr (kCount > 1) {
    if (column < end) MultiplyColumns<kRows, kCount - 1>(p, row, column, end);
  }
}

// Computes the columns [begin, end) of all rows; `begin` is a multiple of kRowColumns.
HWY_INLINE void MultiplyFewRows(const RowProduct& p, int64_t begin, int64_t end) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) MultiplyColumns<4, kVectorsOfRow / 2>(p, row, begin, end);
  if (row + 2 <= p.rows) {
    MultiplyColumns<2, kVectorsOfRow>(p, row, begin, end);
    row += 2;
  }
  if (row < p.rows) MultiplyColumns<1, kVectorsOfRow>(p, row, begin, end);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
