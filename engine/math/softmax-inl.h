// engine/math/softmax-inl.h: softmax of one row of floats; for softmax.cc and sdpa.cc. Internal.
#if defined(ENGINE_MATH_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_SOFTMAX_INL_H_
#undef ENGINE_MATH_SOFTMAX_INL_H_
#else
#define ENGINE_MATH_SOFTMAX_INL_H_
#endif

#include "engine/math/sum-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// e = Half(exp Half(x - m)), where inf - inf counts as 0 (softmax.h).
HWY_INLINE VF ShiftedExp(VF x, VF max) {
  const VF d = hn::Sub(x, max);
  const VF no_nan = hn::IfThenElse(hn::IsNaN(d), hn::Zero(DF()), d);
  return RoundHalf(ExpNonPositive(RoundHalf(no_nan)));
}

// In place, `row` holds values of Halfs before and after.
HWY_INLINE void SoftmaxRow(float* row, int64_t count) {
  const DF df;
  const float max = FoldFixed(
      count, -hwy::HighestValue<float>() * 2.0f,
      [&](int64_t i) HWY_ATTR { return hn::LoadU(df, row + i); },
      [&](int64_t i, int64_t rest) HWY_ATTR {
        const VF lowest = hn::Set(df, -hwy::HighestValue<float>() * 2.0f);
        return hn::IfThenElse(hn::FirstN(df, static_cast<size_t>(rest)), LoadFloatN(row + i, rest),
                              lowest);
      },
      // A NaN counts for nothing here; ShiftedExp makes it 1.
      [](VF a, VF b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); });
  const VF m = hn::Set(df, max);
  const VF sum =
      hn::Set(df, FoldFixed(
                      count, 0.0f,
                      [&](int64_t i) HWY_ATTR {
                        const VF e = ShiftedExp(hn::LoadU(df, row + i), m);
                        hn::StoreU(e, df, row + i);
                        return e;
                      },
                      [&](int64_t i, int64_t rest) HWY_ATTR {
                        const VF e = ShiftedExp(LoadFloatN(row + i, rest), m);
                        StoreFloatN(e, row + i, rest);
                        return hn::IfThenElseZero(hn::FirstN(df, static_cast<size_t>(rest)), e);
                      },
                      [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); }));
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(RoundHalf(hn::Div(hn::LoadU(df, row + i), sum)), df, row + i);
  }
  if (i < count) {
    StoreFloatN(RoundHalf(hn::Div(LoadFloatN(row + i, count - i), sum)), row + i, count - i);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
