// math/reduce/softmax-inl.h: the exponentials of a softmax, for softmax.cc and sdpa.cc. Internal.
#if defined(ANEMONE_MATH_REDUCE_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_REDUCE_SOFTMAX_INL_H_
#undef ANEMONE_MATH_REDUCE_SOFTMAX_INL_H_
#else
#define ANEMONE_MATH_REDUCE_SOFTMAX_INL_H_
#endif

#include "math/core/sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// x - max, where inf - inf counts as 0 (softmax.h).
HWY_INLINE VF Shifted(VF x, VF max) {
  const VF d = hn::Sub(x, max);
  return hn::IfThenElse(hn::IsNaN(d), hn::Zero(DF()), d);
}

// Half(exp(Half(x - max))), with the rounding of softmax.h.
HWY_INLINE VF ShiftedExpHalf(VF x, VF max) {
  return RoundHalf(ExpNonPositive(RoundHalf(Shifted(x, max))));
}

// Replaces each x of a row by exp(x, max), where `max` is the maximum of the row, and returns their
// sum.
template <class Exp>
HWY_INLINE float ExpRow(float* row, int64_t count, const Exp& exp) {
  const DF df;
  const float max = FoldFixed(
      count, -hwy::HighestValue<float>() * 2.0f,
      [&](int64_t i) HWY_ATTR { return hn::LoadU(df, row + i); },
      [&](int64_t i, int64_t rest) HWY_ATTR {
        const VF lowest = hn::Set(df, -hwy::HighestValue<float>() * 2.0f);
        return hn::IfThenElse(hn::FirstN(df, static_cast<size_t>(rest)), LoadFloatN(row + i, rest),
                              lowest);
      },
      // Ignores NaN. The exponential of a NaN is 1.
      [](VF a, VF b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); });
  const VF m = hn::Set(df, max);
  return FoldFixed(
      count, 0.0f,
      [&](int64_t i) HWY_ATTR {
        const VF e = exp(hn::LoadU(df, row + i), m);
        hn::StoreU(e, df, row + i);
        return e;
      },
      [&](int64_t i, int64_t rest) HWY_ATTR {
        const VF e = exp(LoadFloatN(row + i, rest), m);
        StoreFloatN(e, row + i, rest);
        return hn::IfThenElseZero(hn::FirstN(df, static_cast<size_t>(rest)), e);
      },
      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
