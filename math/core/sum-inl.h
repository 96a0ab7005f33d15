// math/core/sum-inl.h: sums whose order does not depend on the vector length, and exp().
// Internal.
#if defined(ANEMONE_MATH_CORE_SUM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CORE_SUM_INL_H_
#undef ANEMONE_MATH_CORE_SUM_INL_H_
#else
#define ANEMONE_MATH_CORE_SUM_INL_H_
#endif

#include "math/core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Element i is added to partial sum i % 32, and the partial sums are added as a tree. These are the
// same additions whether a vector has 1, 4, 8 or 16 lanes.
inline constexpr int64_t kPartialSums = 32;

// Folds the lanes of a vector.
template <class Fold>
HWY_INLINE float FoldLanes(VF all, const Fold& fold) {
  const DF df;
  const hn::RebindToSigned<DF> di;
  for (int32_t half = kLanes / 2; half > 0; half /= 2) {
    const auto upper = hn::And(hn::Iota(di, half), hn::Set(di, static_cast<int32_t>(kLanes - 1)));
    all = fold(all, hn::TableLookupLanes(all, hn::IndicesFromVec(df, upper)));
  }
  return hn::GetLane(all);
}

// Folds the elements [0, count) with fold(a, b), an operation on two vectors, in that order.
// fetch(i) returns the vector of elements from i on. fetch_n(i, rest) returns the last `rest`
// elements, followed by lanes of `neutral`.
template <class Fetch, class FetchN, class Fold>
HWY_INLINE float FoldFixed(int64_t count, float neutral, const Fetch& fetch, const FetchN& fetch_n,
                           const Fold& fold) {
  const DF df;
  constexpr int kVectors = kPartialSums / kLanes;
  VF partial[kVectors];
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) partial[v] = hn::Set(df, neutral);
  int64_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) partial[v] = fold(partial[v], fetch(i + v * kLanes));
  }
  for (int v = 0; i < count; ++v, i += kLanes) {
    partial[v] = fold(partial[v], count - i >= kLanes ? fetch(i) : fetch_n(i, count - i));
  }
  HWY_UNROLL(4)
  for (int half = kVectors / 2; half > 0; half /= 2) {
    HWY_UNROLL(16)
    for (int v = 0; v < half; ++v) partial[v] = fold(partial[v], partial[v + half]);
  }
  return FoldLanes(partial[0], fold);
}

// The sum of map(x) over a float array; map(0) must be 0.
template <class Map>
HWY_INLINE float SumFixed(const float* from, int64_t count, const Map& map) {
  return FoldFixed(
      count, 0.0f, [&](int64_t i) HWY_ATTR { return map(hn::LoadU(DF(), from + i)); },
      [&](int64_t i, int64_t rest) HWY_ATTR { return map(LoadFloatN(from + i, rest)); },
      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
}

// The same sum of at most one vector of elements; the lanes behind them are 0. +0 is added, as to a
// partial sum.
HWY_INLINE float SumLanes(VF elements) {
  return FoldLanes(hn::Add(hn::Zero(DF()), elements),
                   [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
}

// e^x for x <= 0 with a relative error below 1e-6. Below -80 it returns e^-80, which is 0 as a
// Half. Uses x = n ln 2 + r with |r| <= ln 2 / 2.
HWY_INLINE VF ExpNonPositive(VF x) {
  const DF df;
  const hn::RebindToSigned<DF> di;
  x = hn::Max(x, hn::Set(df, -80.0f));
  // Adding 1.5 * 2^23 rounds the quotient to an integer, which is then in the low bits.
  const VF shifter = hn::Set(df, 0x1.8p+23f);
  const VF shifted = hn::MulAdd(x, hn::Set(df, 1.44269504088896341f), shifter);
  const VF n = hn::Sub(shifted, shifter);
  // ln 2 is split into two parts, so that n times the first is exact.
  VF r = hn::NegMulAdd(n, hn::Set(df, 0.693145751953125f), x);
  r = hn::NegMulAdd(n, hn::Set(df, 1.42860682030941723e-6f), r);
  // e^r = 1 + r * q(r), where q has degree 4 and interpolates at Chebyshev nodes; error 2e-7.
  VF p = hn::Set(df, 8.363178931e-03f);
  p = hn::MulAdd(p, r, hn::Set(df, 4.187568650e-02f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.666657627e-01f));
  p = hn::MulAdd(p, r, hn::Set(df, 4.999937117e-01f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(df, hn::Add(hn::BitCast(di, p), exponent));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
