#include "engine/math/element_steps.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/math/element_steps.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "engine/math/binary-inl.h"
#include "engine/math/unary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

constexpr int64_t kStrip = 2048;

// Results that only later steps read, one strip of each; as bytes, for a Half begins as zero.
struct Strips {
  HWY_ALIGN std::byte of_step[kMostSteps][kStrip * sizeof(Half)];

  Half* Of(size_t step) { return reinterpret_cast<Half*>(of_step[step]); }
};

HWY_INLINE const Half* At(const StepSource& source, absl::Span<const StepCall> calls, int64_t first,
                          Strips& strips) {
  if (source.step < 0) return source.repeated ? source.data : source.data + first;
  const Half* to = calls[source.step].to;
  return to == nullptr ? strips.Of(source.step) : to + first;
}

HWY_INLINE void RunStep(const ElementStep& step, const Half* x, const Half* z, bool x_repeats,
                        bool z_repeats, Half* to, int64_t count) {
  if (x_repeats && step.kind != StepKind::kBinary) {
    std::fill_n(to, count, *x);
    x = to;
  }
  switch (step.kind) {
    case StepKind::kAffine:
      return AffineRun(x, step.first, step.second, to, count);
    case StepKind::kClamp:
      return ClampRun(x, step.first, step.second, to, count);
    case StepKind::kLeakyRelu:
      return LeakyReluRun(x, step.first, to, count);
    case StepKind::kGelu:
      return GeluRun(x, to, count);
    case StepKind::kAbs:
      for (int64_t i = 0; i < count; ++i) to[i].bits = static_cast<uint16_t>(x[i].bits & 0x7fff);
      return;
    case StepKind::kTable:
      for (int64_t i = 0; i < count; ++i) to[i] = (*step.table)(x[i]);
      return;
    case StepKind::kBinary:
      break;
  }
  if (const auto function = ScalarFunction(step.op); function != nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      to[i] = ToHalf(function(ToDouble(x[x_repeats ? 0 : i]), ToDouble(z[z_repeats ? 0 : i])));
    }
    return;
  }
  WithBinary(step.op, [&](const auto& function) HWY_ATTR {
    Row(RowOperand(x, x_repeats), RowOperand(z, z_repeats), to, count, function);
  });
}

void RunAll(absl::Span<const StepCall> calls, int64_t count) {
  Strips strips;
  for (int64_t first = 0; first < count; first += kStrip) {
    const int64_t size = std::min(count - first, kStrip);
    for (size_t i = 0; i < calls.size(); ++i) {
      const StepCall& call = calls[i];
      const bool is_binary = call.step.kind == StepKind::kBinary;
      RunStep(call.step, At(call.x, calls, first, strips),
              is_binary ? At(call.z, calls, first, strips) : nullptr, call.x.repeated,
              call.z.repeated, call.to == nullptr ? strips.Of(i) : call.to + first, size);
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
