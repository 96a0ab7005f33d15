// math/core/simd-inl.h: loads and stores Halfs as vectors of float; compiled once per instruction
// set (see hwy/foreach_target.h). Internal.
#if defined(ANEMONE_MATH_CORE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_CORE_SIMD_INL_H_
#undef ANEMONE_MATH_CORE_SIMD_INL_H_
#else
#define ANEMONE_MATH_CORE_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "base/fp16.h"
#include "hwy/highway.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
using DU = hn::RebindToUnsigned<DF>;
using VU = hn::Vec<DU>;
using DH = hn::Rebind<uint16_t, DF>;  // the bits of as many Halfs as a VF has floats
using VH = hn::Vec<DH>;

inline constexpr int64_t kLanes = hn::MaxLanes(DF());

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kVectorRegisters = 32;
#else
inline constexpr int kVectorRegisters = 16;
#endif

// Highway converts fp16 in hardware on AVX2, AVX3 and NEON. On other targets its software
// conversion truncates, so the algorithm of half.h is used instead.
#undef ANEMONE_MATH_NATIVE_HALF
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
#define ANEMONE_MATH_NATIVE_HALF 1
#else
#define ANEMONE_MATH_NATIVE_HALF 0
#endif
#undef ANEMONE_MATH_MASKED_HALF
#if HWY_TARGET == HWY_AVX3
#define ANEMONE_MATH_MASKED_HALF 1  // masked 16-bit loads do not touch the memory of unset lanes
#else
#define ANEMONE_MATH_MASKED_HALF 0
#endif

HWY_INLINE VF Widen(VH halves) {
#if ANEMONE_MATH_NATIVE_HALF
  return hn::PromoteTo(DF(), hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), halves));
#else
  const DU du;
  const DF df;
  const VU bits = hn::PromoteTo(du, halves);
  const VU magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fff)));
  const VU sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  const VU finite = hn::BitCast(du, hn::Mul(hn::BitCast(df, magnitude), hn::Set(df, 0x1p112f)));
  const VU special = hn::Or(magnitude, hn::Set(du, 0x7f800000));
  const VU quiet =
      hn::IfThenElseZero(hn::Gt(special, hn::Set(du, 0x7f800000)), hn::Set(du, 0x00400000));
  const auto is_special = hn::Gt(magnitude, hn::Set(du, 0x0f7fffff));
  return hn::BitCast(df, hn::Or(sign, hn::IfThenElse(is_special, hn::Or(special, quiet), finite)));
#endif
}

HWY_INLINE VH Narrow(VF values) {
#if ANEMONE_MATH_NATIVE_HALF
  return hn::BitCast(DH(), hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), values));
#else
  const DU du;
  const DF df;
  const VU bits = hn::BitCast(du, values);
  const VU magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
  const VU sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
  const VU odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const VU normal =
      hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(du, 0x38000000 - 0xfff)), odd));
  const VU tiny = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5f))),
                          hn::Set(du, 0x3f000000));
  const VU nan =
      hn::Or(hn::Set(du, 0x7e00), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3ff)));
  VU result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(du, 0x38800000)), tiny, normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x477fffff)), hn::Set(du, 0x7c00), result);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7f800000)), nan, result);
  return hn::TruncateTo(DH(), hn::Or(sign, result));
#endif
}

HWY_INLINE VH LoadBits(const Half* from) {
  return hn::LoadU(DH(), reinterpret_cast<const uint16_t*>(from));
}
HWY_INLINE void StoreBits(VH bits, Half* to) {
  hn::StoreU(bits, DH(), reinterpret_cast<uint16_t*>(to));
}

// Loads the first `count` elements, fewer than a vector, followed by zeros. Touches no other
// memory. Here and in the runs below, pointers need not be aligned to their type.
template <class D>
HWY_INLINE hn::Vec<D> LoadFirstBits(D d, const Half* from, int64_t count) {
#if ANEMONE_MATH_MASKED_HALF
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d,
                        reinterpret_cast<const hn::TFromD<D>*>(from));
#else
  HWY_ALIGN hn::TFromD<D> bits[hn::MaxLanes(D())] = {};
  std::memcpy(bits, static_cast<const void*>(from), count * sizeof(Half));
  return hn::Load(d, bits);
#endif
}
HWY_INLINE VH LoadBitsN(const Half* from, int64_t count) {
  return LoadFirstBits(DH(), from, count);
}
// Stores the first `count` lanes, at most all.
template <class D>
HWY_INLINE void StoreFirstBits(D d, hn::Vec<D> bits, Half* to, int64_t count) {
  auto* at = reinterpret_cast<hn::TFromD<D>*>(to);
#if ANEMONE_MATH_MASKED_HALF
  hn::BlendedStore(bits, hn::FirstN(d, static_cast<size_t>(count)), d, at);
#else
  if (count == hn::MaxLanes(d)) return hn::StoreU(bits, d, at);
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
  hn::Store(bits, d, lanes);
  std::memcpy(static_cast<void*>(to), lanes, count * sizeof(Half));
#endif
}
HWY_INLINE void StoreBitsN(VH values, Half* to, int64_t count) {
  StoreFirstBits(DH(), values, to, count);
}
HWY_INLINE VF LoadFloatN(const float* from, int64_t count) {
#if ANEMONE_MATH_MASKED_HALF
  return hn::MaskedLoad(hn::FirstN(DF(), static_cast<size_t>(count)), DF(), from);
#else
  HWY_ALIGN float values[kLanes] = {};
  std::memcpy(values, static_cast<const void*>(from), count * sizeof(float));
  return hn::Load(DF(), values);
#endif
}
// Loads min(count, kLanes) elements, followed by zeros.
HWY_INLINE VF LoadFloatUpTo(const float* from, int64_t count) {
  return count >= kLanes ? hn::LoadU(DF(), from) : LoadFloatN(from, count);
}
HWY_INLINE void StoreFloatN(VF values, float* to, int64_t count) {
#if ANEMONE_MATH_MASKED_HALF
  hn::BlendedStore(values, hn::FirstN(DF(), static_cast<size_t>(count)), DF(), to);
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(values, DF(), lanes);
  std::memcpy(static_cast<void*>(to), lanes, count * sizeof(float));
#endif
}

HWY_INLINE VF LoadHalf(const Half* from) { return Widen(LoadBits(from)); }
HWY_INLINE void StoreHalf(VF values, Half* to) { StoreBits(Narrow(values), to); }
HWY_INLINE VF LoadHalfN(const Half* from, int64_t count) { return Widen(LoadBitsN(from, count)); }
HWY_INLINE void StoreHalfN(VF values, Half* to, int64_t count) {
  StoreBitsN(Narrow(values), to, count);
}

// Rounds to Half and widens again.
HWY_INLINE VF RoundHalf(VF values) { return Widen(Narrow(values)); }

// Minimum and maximum of numbers (not NaN). -0 is less than +0 on every instruction set.
HWY_INLINE VF SmallerOf(VF a, VF b) {
  return hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), hn::Min(a, b));
}
HWY_INLINE VF LargerOf(VF a, VF b) {
  return hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), hn::Max(a, b));
}

// The same, but a NaN if either operand is one.
HWY_INLINE VF MinNan(VF a, VF b) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, SmallerOf(a, b)));
}
HWY_INLINE VF MaxNan(VF a, VF b) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, LargerOf(a, b)));
}

// Clamps x to [lo, hi], which must not be NaN. A NaN in x stays. If lo is +0, -0 becomes +0.
HWY_INLINE VF ClampNan(VF x, VF lo, VF hi) {
  x = hn::IfThenElse(hn::Le(x, lo), lo, x);
  return hn::IfThenElse(hn::Gt(x, hi), hi, x);
}

// AtLeast() and AtMost() clamp an unrounded sum to one of an epilogue's limits. The sum is not -0:
// it began at +0, or, in winograd.cc, a bias was added (PackGeometry). A NaN stays: Max and Min of
// x86 return the second operand if either is a NaN. On Arm and in plain C++ Highway's return the
// number, so these targets compare instead.
#undef ANEMONE_MATH_SECOND_IF_NAN
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ANEMONE_MATH_SECOND_IF_NAN 1
#else
#define ANEMONE_MATH_SECOND_IF_NAN 0
#endif
template <class V>
HWY_INLINE V AtLeast(V lo, V sum) {
  if (ANEMONE_MATH_SECOND_IF_NAN) return hn::Max(lo, sum);
  return hn::IfThenElse(hn::Lt(sum, lo), lo, sum);
}
template <class V>
HWY_INLINE V AtMost(V hi, V sum) {
  if (ANEMONE_MATH_SECOND_IF_NAN) return hn::Min(hi, sum);
  return hn::IfThenElse(hn::Gt(sum, hi), hi, sum);
}

// Clamps such sums to an epilogue's limits; `limits` may be null.
template <size_t kCount>
HWY_INLINE void LimitSums(const Limits* limits, VF (&sums)[kCount]) {
  if (limits == nullptr) return;
  const VF lo = hn::Set(DF(), limits->lo), hi = hn::Set(DF(), limits->hi);
  HWY_UNROLL(24)
  for (size_t i = 0; i < kCount; ++i) sums[i] = AtLeast(lo, sums[i]);
  if (limits->hi > fp16::kLargest) return;  // infinity
  HWY_UNROLL(24)
  for (size_t i = 0; i < kCount; ++i) sums[i] = AtMost(hi, sums[i]);
}

// Converts contiguous runs of any length.
HWY_INLINE void WidenRun(const Half* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(LoadHalf(from + i), DF(), to + i);
  if (i < count) StoreFloatN(LoadHalfN(from + i, count - i), to + i, count - i);
}
HWY_INLINE void NarrowRun(const float* from, Half* to, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) StoreHalf(hn::LoadU(DF(), from + i), to + i);
  if (i < count) StoreHalfN(LoadFloatN(from + i, count - i), to + i, count - i);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
