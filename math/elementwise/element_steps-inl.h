// math/elementwise/element_steps-inl.h: one step of element_steps.h on a contiguous run. Internal.
#if defined(ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_INL_H_
#undef ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_INL_H_
#else
#define ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_INL_H_
#endif

#include <cstdint>

#include "math/elementwise/binary-inl.h"
#include "math/elementwise/element_steps.h"
#include "math/elementwise/unary-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// A step of one operand, with the step's numbers `first` and `second`, or those of a channel.
HWY_INLINE void UnaryRun(const ElementStep& step, float first, float second, const Half* from,
                         Half* to, int64_t count) {
  switch (step.kind) {
    case StepKind::kAffine:
      return AffineRun(from, first, second, to, count);
    case StepKind::kClamp:
      return ClampRun(from, first, second, to, count);
    case StepKind::kLeakyRelu:
      return LeakyReluRun(from, first, to, count);
    case StepKind::kGelu:
      return GeluRun(from, to, count);
    case StepKind::kSigmoid:
      return SigmoidRun(from, to, count);
    case StepKind::kSilu:
      return SiluRun(from, to, count);
    case StepKind::kAbs:
      for (int64_t k = 0; k < count; ++k) {
        to[k].bits = static_cast<uint16_t>(from[k].bits & 0x7fff);
      }
      return;
    case StepKind::kRound:
      return RoundRun(from, to, count);
    case StepKind::kTable:
      for (int64_t k = 0; k < count; ++k) to[k] = (*step.table)(from[k]);
      return;
    case StepKind::kBinary:
      return;  // has two operands
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
