// math/exact/exact_half-inl.h: Stored() of exact_half.h on vectors; compiled once per instruction
// set (see hwy/foreach_target.h). Internal.
#if defined(ANEMONE_MATH_EXACT_EXACT_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_EXACT_EXACT_HALF_INL_H_
#undef ANEMONE_MATH_EXACT_EXACT_HALF_INL_H_
#else
#define ANEMONE_MATH_EXACT_EXACT_HALF_INL_H_
#endif

#include "base/fp16.h"
#include "math/core/simd-inl.h"
#include "math/exact/exact_half.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Rounds to the nearest Half, ties away from zero.
HWY_INLINE VF RoundTiesAway(VF x) {
  const DF df;
  const DU du;
  const VF magnitude = hn::Abs(x);
  // Adds half of the last bit that is kept, then clears the bits below it. A carry into the
  // exponent is correct.
  const VU raised = hn::Add(hn::BitCast(du, magnitude), hn::Set(du, 0x1000));
  VF rounded = hn::BitCast(df, hn::And(raised, hn::Set(du, 0xffffe000)));
  rounded = hn::IfThenElse(hn::Ge(rounded, hn::Set(df, 65536.0f)), hn::Inf(df), rounded);
  // Below the smallest normal number the last bit is 2^-24.
  const VF units = hn::Mul(magnitude, hn::Set(df, 1 / fp16::kSmallest));
  const VF whole = hn::Trunc(units);
  const auto is_up = hn::Ge(hn::Sub(units, whole), hn::Set(df, 0.5f));
  const VF up = hn::IfThenElseZero(is_up, hn::Set(df, 1.0f));
  const VF tiny = hn::Mul(hn::Add(whole, up), hn::Set(df, fp16::kSmallest));
  return hn::CopySign(
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(df, fp16::kSmallestNormal)), tiny, rounded), x);
}

// The values after storage. `x` may be a sum, difference, product or quotient of two Halfs that was
// rounded to float: the result is the same as with one rounding, because the float is a tie only if
// the exact value is one.
HWY_INLINE VF StoredValues(VF x, const StorageRule& rule) {
  const DF df;
  x = hn::IfThenElseZero(hn::Eq(x, x), x);  // st-nan-gen
  const auto is_beyond = hn::Gt(hn::Abs(x), hn::Set(df, rule.most));
  x = hn::IfThenElse(is_beyond, hn::CopySign(hn::Inf(df), x), x);
  return rule.ties_away ? RoundTiesAway(x) : RoundHalf(x);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
