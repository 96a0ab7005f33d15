// math/gemm/one_row-inl.h: the product of one row with packed, dense weights, which are read once,
// in the order of memory. Internal.
#if defined(ANEMONE_MATH_GEMM_ONE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_ONE_ROW_INL_H_
#undef ANEMONE_MATH_GEMM_ONE_ROW_INL_H_
#else
#define ANEMONE_MATH_GEMM_ONE_ROW_INL_H_
#endif

#include "math/core/simd-inl.h"
#include "math/gemm/gemm_operands.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// As many vectors as their sums, whose additions wait for each other, keep the units busy. Nothing
// is prefetched: the processor follows the weights by itself, and was faster without.
constexpr int kVectorsOfRow = 6;

// Computes kCount vectors of columns; those from `end` on are not stored.
template <int kCount>
HWY_INLINE void MultiplyVectors(const RowProduct& p, int64_t column, int64_t end) {
  const DF df;
  const Half* from[kCount];
  VF sums[kCount];
  HWY_UNROLL(6)
  for (int v = 0; v < kCount; ++v) {
    const int64_t at = column + v * kLanes;
    from[v] = p.panels + at / kPanelColumns * kPanelColumns * p.depth + at % kPanelColumns;
    sums[v] = hn::Zero(df);
  }
  for (int64_t k = 0; k < p.depth; ++k) {
    const VF factor = hn::Set(df, p.a[k]);
    HWY_UNROLL(6)
    for (int v = 0; v < kCount; ++v) {
      sums[v] = hn::MulAdd(factor, LoadHalf(from[v] + k * kPanelColumns), sums[v]);
    }
  }
  HWY_UNROLL(6)
  for (int v = 0; v < kCount; ++v) {
    const int64_t at = column + v * kLanes, rest = end - at;
    if (p.bias != nullptr) sums[v] = hn::Add(sums[v], LoadFloatUpTo(p.bias + at, rest));
    rest >= kLanes ? StoreHalf(sums[v], p.to + at) : StoreHalfN(sums[v], p.to + at, rest);
  }
}

// Computes the columns [begin, end); `begin` is a multiple of kRowColumns.
HWY_INLINE void MultiplyRow(const RowProduct& p, int64_t begin, int64_t end) {
  int64_t column = begin;
  for (; column + (kVectorsOfRow - 1) * kLanes < end; column += kVectorsOfRow * kLanes) {
    MultiplyVectors<kVectorsOfRow>(p, column, end);
  }
  if (column >= end) return;
  switch (CeilDiv(end - column, kLanes)) {
    case 1:
      return MultiplyVectors<1>(p, column, end);
    case 2:
      return MultiplyVectors<2>(p, column, end);
    case 3:
      return MultiplyVectors<3>(p, column, end);
    case 4:
      return MultiplyVectors<4>(p, column, end);
    default:
      return MultiplyVectors<5>(p, column, end);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
