#include "engine/math/element_steps.h"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/math/element_steps.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "engine/math/binary-inl.h"
#include "engine/math/unary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

constexpr int64_t kStrip = 256;

// One strip of every step's result, as float, and of two operands in memory.
struct Strips {
  HWY_ALIGN float results[kMostSteps][kStrip];
  HWY_ALIGN float operands[2][kStrip];
};

// `count` elements of the strip that begins at `first`; what lies behind them in a vector is any
// number.
HWY_INLINE const float* Read(const StepSource& source, int64_t first, int64_t count,
                             const Strips& strips, float* into) {
  if (source.step >= 0) return strips.results[source.step];
  const DF df;
  if (source.repeated) {
    const VF value = hn::Set(df, ToFloat(*source.data));
    for (int64_t i = 0; i < count; i += kLanes) hn::Store(value, df, into + i);
    return into;
  }
  const Half* from = source.data + first;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::Store(LoadHalf(from + i), df, into + i);
  if (i < count) hn::Store(LoadHalfN(from + i, count - i), df, into + i);
  return into;
}

// bits(i): a vector of the result.
template <class Function>
HWY_INLINE void Write(Half* to, int64_t count, float* result, const Function& bits) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const VH y = bits(i);
    hn::Store(Widen(y), DF(), result + i);
    if (to == nullptr) continue;
    if (i + kLanes <= count) {
      StoreBits(y, to + i);
    } else {
      StoreBitsN(y, to + i, count - i);
    }
  }
}

HWY_INLINE void LookUp(const UnaryTable& table, const float* x, Half* to, int64_t count,
                       float* result) {
  HWY_ALIGN Half looked_up[kStrip];
  for (int64_t i = 0; i < count; i += kLanes) {
    StoreHalf(hn::Load(DF(), x + i), looked_up + i);
  }
  for (int64_t i = 0; i < count; ++i) looked_up[i] = table(looked_up[i]);
  Write(to, count, result, [&](int64_t i) HWY_ATTR { return LoadBits(looked_up + i); });
}

HWY_INLINE void RunStep(const StepCall& call, int64_t first, int64_t count, Strips& strips,
                        float* result) {
  const DF df;
  const ElementStep& step = call.step;
  Half* const to = call.to == nullptr ? nullptr : call.to + first;
  const float* x = Read(call.x, first, count, strips, strips.operands[0]);
  const VF one = hn::Set(df, step.first), two = hn::Set(df, step.second);
  const auto map = [&](const auto& function) HWY_ATTR {
    Write(to, count, result,
          [&](int64_t i) HWY_ATTR { return Narrow(function(hn::Load(df, x + i))); });
  };
  switch (step.kind) {
    case StepKind::kAffine:
      return map([&](VF v) HWY_ATTR { return AffineOf(v, one, two); });
    case StepKind::kClamp:
      return map([&](VF v) HWY_ATTR { return ClampNan(v, one, two); });
    case StepKind::kLeakyRelu:
      return map([&](VF v) HWY_ATTR { return LeakyReluOf(v, one); });
    case StepKind::kGelu:
      return map([](VF v) HWY_ATTR { return GeluOf(v); });
    case StepKind::kAbs:
      return map([](VF v) HWY_ATTR { return hn::Abs(v); });
    case StepKind::kTable:
      return LookUp(*step.table, x, to, count, result);
    case StepKind::kBinary:
      break;
  }
  const float* z = Read(call.z, first, count, strips, strips.operands[1]);
  if (const auto function = ScalarFunction(step.op); function != nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const Half y = ToHalf(function(x[i], z[i]));
      result[i] = ToFloat(y);
      if (to != nullptr) to[i] = y;
    }
    return;
  }
  WithBinary(step.op, [&](const auto& function) HWY_ATTR {
    Write(to, count, result, [&](int64_t i) HWY_ATTR {
      return Narrow(function(hn::Load(df, x + i), hn::Load(df, z + i)));
    });
  });
}

void RunAll(absl::Span<const StepCall> calls, int64_t count) {
  Strips strips;
  for (int64_t first = 0; first < count; first += kStrip) {
    const int64_t size = std::min(count - first, kStrip);
    for (size_t i = 0; i < calls.size(); ++i) {
      RunStep(calls[i], first, size, strips, strips.results[i]);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(RunAll);

void RunSteps(absl::Span<const StepCall> calls, int64_t count) {
  assert(calls.size() <= static_cast<size_t>(kMostSteps));
  HWY_DYNAMIC_DISPATCH(RunAll)(calls, count);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
