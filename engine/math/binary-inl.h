// engine/math/binary-inl.h: the operations of elementwise.h on vectors. Internal.
#if defined(ENGINE_MATH_BINARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ENGINE_MATH_BINARY_INL_H_
#undef ENGINE_MATH_BINARY_INL_H_
#else
#define ENGINE_MATH_BINARY_INL_H_
#endif

#include "engine/math/elementwise.h"
#include "engine/math/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Highway leaves open what Ne says of a NaN; a NaN differs from everything.
HWY_INLINE hn::Mask<DF> Differ(VF x, VF y) { return hn::Not(hn::Eq(x, y)); }

HWY_INLINE VF OneIf(hn::Mask<DF> condition) {
  return hn::IfThenElseZero(condition, hn::Set(DF(), 1.0f));
}

// Calls run(f), where f(x, y) is the operation; not for those that ScalarFunction() has.
template <class Run>
HWY_INLINE void WithBinary(BinaryOp op, const Run& run) {
  const VF zero = hn::Zero(DF());
  switch (op) {
    case BinaryOp::kAdd:
      return run([](VF x, VF y) HWY_ATTR { return hn::Add(x, y); });
    case BinaryOp::kSub:
      return run([](VF x, VF y) HWY_ATTR { return hn::Sub(x, y); });
    case BinaryOp::kMul:
      return run([](VF x, VF y) HWY_ATTR { return hn::Mul(x, y); });
    case BinaryOp::kDiv:
      return run([](VF x, VF y) HWY_ATTR { return hn::Div(x, y); });
    case BinaryOp::kMin:
      return run([](VF x, VF y) HWY_ATTR { return MinNan(x, y); });
    case BinaryOp::kMax:
      return run([](VF x, VF y) HWY_ATTR { return MaxNan(x, y); });
    case BinaryOp::kSquaredDifference:
      return run([](VF x, VF y) HWY_ATTR {
        const VF difference = hn::Sub(x, y);
        return hn::Mul(difference, difference);
      });
    case BinaryOp::kFloorDiv:
      return run([](VF x, VF y) HWY_ATTR { return hn::Floor(hn::Div(x, y)); });
    case BinaryOp::kEqual:
      return run([](VF x, VF y) HWY_ATTR { return OneIf(hn::Eq(x, y)); });
    case BinaryOp::kNotEqual:
      return run([](VF x, VF y) HWY_ATTR { return OneIf(Differ(x, y)); });
    case BinaryOp::kLess:
      return run([](VF x, VF y) HWY_ATTR { return OneIf(hn::Lt(x, y)); });
    case BinaryOp::kLessEqual:
      return run([](VF x, VF y) HWY_ATTR { return OneIf(hn::Le(x, y)); });
    case BinaryOp::kGreater:
      return run([](VF x, VF y) HWY_ATTR { return OneIf(hn::Gt(x, y)); });
    case BinaryOp::kGreaterEqual:
      return run([](VF x, VF y) HWY_ATTR { return OneIf(hn::Ge(x, y)); });
    case BinaryOp::kAnd:
      return run([zero](VF x, VF y)
                     HWY_ATTR { return OneIf(hn::And(Differ(x, zero), Differ(y, zero))); });
    case BinaryOp::kOr:
      return run([zero](VF x, VF y)
                     HWY_ATTR { return OneIf(hn::Or(Differ(x, zero), Differ(y, zero))); });
    case BinaryOp::kXor:
      return run([zero](VF x, VF y)
                     HWY_ATTR { return OneIf(hn::Xor(Differ(x, zero), Differ(y, zero))); });
    case BinaryOp::kPow:
    case BinaryOp::kMod:
      return;  // scalar
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
