// math/elementwise/unary-inl.h: the functions of unary.h that need no table, on contiguous runs.
// Internal.
#if defined(ANEMONE_MATH_ELEMENTWISE_UNARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_ELEMENTWISE_UNARY_INL_H_
#undef ANEMONE_MATH_ELEMENTWISE_UNARY_INL_H_
#else
#define ANEMONE_MATH_ELEMENTWISE_UNARY_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "base/fp16.h"
#include "math/core/sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

template <class Function>
HWY_INLINE void MapRun(const Half* in, Half* out, int64_t count, const Function& function) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) StoreHalf(function(LoadHalf(in + i)), out + i);
  if (i < count) StoreHalfN(function(LoadHalfN(in + i, count - i)), out + i, count - i);
}

// Maps the bits of Halfs, in full vectors of 16-bit lanes.
template <class Function>
HWY_INLINE void MapBits(const Half* in, Half* out, int64_t count, const Function& function) {
  const hn::ScalableTag<uint16_t> d;
  const int64_t lanes = hn::Lanes(d);
  const auto* from = reinterpret_cast<const uint16_t*>(in);
  auto* to = reinterpret_cast<uint16_t*>(out);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(function(d, hn::LoadU(d, from + i)), d, to + i);
  if (i == count) return;
  HWY_ALIGN uint16_t tail[hn::MaxLanes(d)] = {};
  std::memcpy(tail, from + i, (count - i) * sizeof(Half));
  hn::Store(function(d, hn::Load(d, tail)), d, tail);
  std::memcpy(to + i, tail, (count - i) * sizeof(Half));
}

// Whether numbers equal `limit` or are further from zero on the same side. The bits of Halfs of one
// sign are in the order of their magnitudes, so these numbers are a range of bits that ends with
// the infinity. NaNs come after it.
template <class D>
HWY_INLINE auto Reach(const D d, hn::Vec<D> bits, uint16_t limit) {
  const auto count = static_cast<uint16_t>(0x7c01 - (limit & 0x7fff));
  return hn::Lt(hn::Sub(bits, hn::Set(d, limit)), hn::Set(d, count));
}

// Clamps by comparing bits. Requires lo <= 0 <= hi. A NaN stays.
inline void ClampBits(const Half* in, Half lo, Half hi, Half* out, int64_t count) {
  const auto low = static_cast<uint16_t>(lo.bits | 0x8000);
  const auto high = static_cast<uint16_t>(hi.bits & 0x7fff);
  const auto raise = [=](const auto d, const auto bits) HWY_ATTR {
    return hn::IfThenElse(Reach(d, bits, low), hn::Set(d, lo.bits), bits);
  };
  if (high == 0x7c00) return MapBits(in, out, count, raise);  // nothing is above infinity
  MapBits(in, out, count, [=](const auto d, const auto bits) HWY_ATTR {
    return hn::IfThenElse(Reach(d, bits, high), hn::Set(d, hi.bits), raise(d, bits));
  });
}

inline void ClampRun(const Half* in, float lo, float hi, Half* out, int64_t count) {
  const VF low = hn::Set(DF(), std::min(lo, hi) + 0.0f), high = hn::Set(DF(), hi + 0.0f);  // no -0
  const VH low_bits = Narrow(low), high_bits = Narrow(high);
  const bool are_halfs =
      hn::AllTrue(DF(), hn::And(hn::Eq(Widen(low_bits), low), hn::Eq(Widen(high_bits), high)));
  if (are_halfs && lo <= 0 && hi >= 0) {
    return ClampBits(in, {hn::GetLane(low_bits)}, {hn::GetLane(high_bits)}, out, count);
  }
  MapRun(in, out, count, [&](VF x) HWY_ATTR { return ClampNan(x, low, high); });
}

inline void LeakyReluRun(const Half* in, float slope, Half* out, int64_t count) {
  const VF factor = hn::Set(DF(), slope), zero = hn::Zero(DF());
  MapRun(in, out, count,
         [&](VF x) HWY_ATTR { return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, factor), x); });
}

// Whether a number is a Half with all of its bits: not a subnormal one.
inline bool IsHalf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const float magnitude = std::fabs(x);
  return (bits & 0x1fff) == 0 && magnitude >= 0x1p-14f && magnitude <= fp16::kLargest;
}

// in * scale + bias, where product and sum are each rounded to fp32. If `scale` is a Half, the
// product is exact, so that a fused multiply-add gives the same result.
inline void AffineRun(const Half* in, float scale, float bias, Half* out, int64_t count) {
  const VF factor = hn::Set(DF(), scale), offset = hn::Set(DF(), bias);
  if (IsHalf(scale)) {
    return MapRun(in, out, count, [&](VF x) HWY_ATTR { return hn::MulAdd(x, factor, offset); });
  }
  MapRun(in, out, count, [&](VF x) HWY_ATTR { return hn::Add(hn::Mul(x, factor), offset); });
}

// The same with a scale and a bias for each element.
inline void AffineEach(const Half* in, const float* scales, const float* biases, Half* out,
                       int64_t count) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t rest = count - i;
    const VF scale = LoadFloatUpTo(scales + i, rest), bias = LoadFloatUpTo(biases + i, rest);
    if (rest >= kLanes) {
      StoreHalf(hn::Add(hn::Mul(LoadHalf(in + i), scale), bias), out + i);
    } else {
      StoreHalfN(hn::Add(hn::Mul(LoadHalfN(in + i, rest), scale), bias), out + i, rest);
    }
  }
}

// A Half to the nearest integer, halves away from zero. A result has the sign of its operand. The
// sum is exact: 24 bits are enough for it.
HWY_INLINE VF RoundOf(VF x) { return hn::Trunc(hn::Add(x, hn::CopySign(hn::Set(DF(), 0.5f), x))); }

inline void RoundRun(const Half* in, Half* out, int64_t count) {
  MapRun(in, out, count, [](VF x) HWY_ATTR { return RoundOf(x); });
}

// gelu(x) = max(x, 0) - t * Phi(-t), where t = |x| and Phi is the distribution function of the
// standard normal distribution. The second term is symmetric, and from kEnd on it rounds to nothing
// as a Half. Phi(-t) = 1/2 - t * p(2t / kEnd - 1), where p is a least-squares fit in Chebyshev
// polynomials (weight t^2); error 5e-8 before rounding to fp32.
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

inline void GeluRun(const Half* in, Half* out, int64_t count) {
  MapRun(in, out, count, [](VF x) HWY_ATTR { return GeluOf(x); });
}

// 1 / (1 + e^-x), computed with e^-|x|, which does not overflow. Undefined for a NaN.
HWY_INLINE VF SigmoidOf(VF x) {
  const DF df;
  const VF one = hn::Set(df, 1.0f);
  const VF e = ExpNonPositive(hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(df)), e, one), hn::Add(one, e));
}

inline void SigmoidRun(const Half* in, Half* out, int64_t count) {
  MapRun(in, out, count,
         [](VF x) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(x), x, SigmoidOf(x)); });
}

inline void SiluRun(const Half* in, Half* out, int64_t count) {
  const VF lowest = hn::Set(DF(), fp16::kLowest);  // so that silu(-infinity) is -0
  MapRun(in, out, count, [=](VF x) HWY_ATTR { return hn::Mul(AtLeast(lowest, x), SigmoidOf(x)); });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
