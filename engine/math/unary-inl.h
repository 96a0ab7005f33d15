// engine/math/unary-inl.h: functions of one vector of elements. Internal.
#if defined(ENGINE_MATH_UNARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_UNARY_INL_H_
#undef ENGINE_MATH_UNARY_INL_H_
#else
#define ENGINE_MATH_UNARY_INL_H_
#endif

#include <cstddef>
#include <iterator>

#include "engine/math/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

HWY_INLINE VF LeakyReluOf(VF x, VF slope) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), hn::Mul(x, slope), x);
}

// The product of two Halfs is exact in fp32, so scale and bias that are Halfs give one rounding in
// the sum and one in the result, fused or not.
HWY_INLINE VF AffineOf(VF x, VF scale, VF bias) { return hn::Add(hn::Mul(x, scale), bias); }

// gelu(x) = max(x, 0) - t * Phi(-t), where t = |x| and Phi is the normal distribution: the same
// bump on both sides, which from kEnd on is nothing as a Half. Phi(-t) = 1/2 - t * p(2t / kEnd -
// 1), p by a least-squares fit in Chebyshev polynomials (weight t^2); exact to 5e-8 before fp32
// rounds.
HWY_INLINE VF GeluOf(VF x) {
  constexpr float kEnd = 5.75f;
  constexpr float kFit[] = {
      -6.940879975e-04f, -4.804000491e-04f, 7.182477973e-03f,  -4.368633032e-03f, -2.073571086e-02f,
      3.059857711e-02f,  1.252365950e-02f,  -6.544232368e-02f, 5.302799121e-02f,  2.809849381e-02f,
      -1.023887247e-01f, 9.874667227e-02f,  -1.954544149e-02f, -7.633333653e-02f, 1.403691024e-01f,
      -1.668121964e-01f, 1.732103974e-01f};
  const DF df;
  const VF zero = hn::Zero(df);
  const VF t = hn::Abs(x);
  const VF s = hn::MulSub(t, hn::Set(df, 2.0f / kEnd), hn::Set(df, 1.0f));
  VF p = hn::Set(df, kFit[0]);
  HWY_UNROLL(16)
  for (size_t i = 1; i < std::size(kFit); ++i) p = hn::MulAdd(p, s, hn::Set(df, kFit[i]));
  const VF tail = hn::NegMulAdd(t, p, hn::Set(df, 0.5f));
  const VF bump = hn::IfThenElse(hn::Lt(t, hn::Set(df, kEnd)), hn::Mul(t, tail), zero);
  const VF y = hn::Sub(hn::IfThenElse(hn::Lt(x, zero), zero, x), bump);  // keeps a NaN
  return hn::CopySign(y, x);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
