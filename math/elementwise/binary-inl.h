// math/elementwise/binary-inl.h: the binary operations of elementwise.h on vectors. Internal.
#if defined(ANEMONE_MATH_ELEMENTWISE_BINARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_ELEMENTWISE_BINARY_INL_H_
#undef ANEMONE_MATH_ELEMENTWISE_BINARY_INL_H_
#else
#define ANEMONE_MATH_ELEMENTWISE_BINARY_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "math/core/simd-inl.h"
#include "math/elementwise/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// One operand of a row: contiguous elements, or one value that is repeated.
struct RowOperand {
  RowOperand(const Half* from, bool repeated) : from(from), repeated(repeated) {
    if (repeated) value = hn::Set(DF(), ToFloat(*from));
  }
  HWY_INLINE VF At(int64_t i) const { return repeated ? value : LoadHalf(from + i); }
  HWY_INLINE VF AtN(int64_t i, int64_t count) const {
    return repeated ? value : LoadHalfN(from + i, count);
  }
  const Half* from;
  bool repeated;
  VF value = hn::Zero(DF());
};

// The product, except that zero times an infinity or a NaN is zero (numerics.json st-nan-gen).
struct Product {
  HWY_INLINE VF operator()(VF x, VF y) const {
    const DF df;
    const VF product = hn::Mul(x, y);
    const auto is_none = hn::IsNaN(product);
    if (HWY_LIKELY(hn::AllFalse(df, is_none))) return product;
    const auto by_zero = hn::Or(hn::Eq(x, hn::Zero(df)), hn::Eq(y, hn::Zero(df)));
    return hn::IfThenElse(hn::And(is_none, by_zero), hn::Zero(df), product);
  }
  // Several vectors at once. If their sum is not a NaN, none of the products is a NaN.
  template <size_t kCount>
  HWY_INLINE void All(const VF (&x)[kCount], const VF (&y)[kCount], VF (&to)[kCount]) const {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kCount; ++i) to[i] = hn::Mul(x[i], y[i]);
    if (HWY_LIKELY(HaveNoNan(to))) return;
    for (size_t i = 0; i < kCount; ++i) to[i] = (*this)(x[i], y[i]);
  }
  // False also if the sum of the numbers is a NaN.
  template <size_t kCount>
  static HWY_INLINE bool HaveNoNan(const VF (&x)[kCount]) {
    VF sums[2] = {x[0], hn::Zero(DF())};
    HWY_UNROLL(8)
    for (size_t i = 1; i < kCount; ++i) sums[i % 2] = hn::Add(sums[i % 2], x[i]);
    return hn::AllFalse(DF(), hn::IsNaN(hn::Add(sums[0], sums[1])));
  }
};

// max(x, 0) + Half(min(x, 0) * slope), with the product of Product.
struct PRelu {
  // As the sum of +0 and a number that is rounded to Half first, no result is -0: half of the
  // smallest Half and less is rounded to 0.
  static HWY_INLINE VF Choose(VF x, VF product) {
    const VF y = hn::IfThenElse(hn::Lt(x, hn::Zero(DF())), product, x);
    return hn::IfThenZeroElse(hn::Le(hn::Abs(y), hn::Set(DF(), 0x1p-25f)), y);
  }
  HWY_INLINE VF operator()(VF x, VF slope) const { return Choose(x, Product()(x, slope)); }
  template <size_t kCount>
  HWY_INLINE void All(const VF (&x)[kCount], const VF (&slope)[kCount], VF (&to)[kCount]) const {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kCount; ++i) to[i] = Choose(x[i], hn::Mul(x[i], slope[i]));
    if (HWY_LIKELY(Product::HaveNoNan(to))) return;
    for (size_t i = 0; i < kCount; ++i) to[i] = (*this)(x[i], slope[i]);
  }
};

template <class Op>
HWY_INLINE void Row(const RowOperand& a, const RowOperand& b, Half* out, int64_t count,
                    const Op& op) {
  int64_t i = 0;
  if constexpr (std::is_same_v<Op, Product> || std::is_same_v<Op, PRelu>) {
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      const VF x[] = {a.At(i), a.At(i + kLanes), a.At(i + 2 * kLanes), a.At(i + 3 * kLanes)};
      const VF y[] = {b.At(i), b.At(i + kLanes), b.At(i + 2 * kLanes), b.At(i + 3 * kLanes)};
      VF products[4];
      op.All(x, y, products);
      HWY_UNROLL(4)
      for (int64_t v = 0; v < 4; ++v) StoreHalf(products[v], out + i + v * kLanes);
    }
  }
  for (; i + kLanes <= count; i += kLanes) StoreHalf(op(a.At(i), b.At(i)), out + i);
  if (i < count) {
    const int64_t rest = count - i;
    StoreHalfN(op(a.AtN(i, rest), b.AtN(i, rest)), out + i, rest);
  }
}

// Highway does not define the result of Ne for a NaN. Here a NaN differs from everything.
HWY_INLINE hn::Mask<DF> Differ(VF x, VF y) { return hn::Not(hn::Eq(x, y)); }

HWY_INLINE VF OneIf(hn::Mask<DF> condition) {
  return hn::IfThenElseZero(condition, hn::Set(DF(), 1.0f));
}

// Calls run(f), where f(x, y) computes the operation on vectors. Does nothing for the operations
// for which ScalarFunction() returns a function.
template <class Run>
HWY_INLINE void WithBinary(BinaryOp op, const Run& run) {
  const VF zero = hn::Zero(DF());
  switch (op) {
    case BinaryOp::kAdd:
      return run([](VF x, VF y) HWY_ATTR { return hn::Add(x, y); });
    case BinaryOp::kSub:
      return run([](VF x, VF y) HWY_ATTR { return hn::Sub(x, y); });
    case BinaryOp::kMul:
      return run(Product());
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
