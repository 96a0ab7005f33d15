// math/elementwise/elementwise.h: elementwise operations on two or three arrays, with broadcasting.
//
//   Extents x = {1, 1, 64, 56, 56}, bias = {1, 1, 64, 1, 1};
//   Binary(BinaryOp::kAdd, a, x, b, bias, y, x);          // b is repeated over H and W
//   Select(mask, x, a, x, zero, {1, 1, 1, 1, 1}, y, x);   // mask != 0 ? a : 0
//
// Along each axis the extent of an operand is 1 or that of the result. A scalar has extents {1, 1,
// 1, 1, 1}. Every element is computed in fp32 and rounded once. Comparisons give 1 or 0. The result
// may be the same array as an operand that is not broadcast, so that a unit can work in place.
#ifndef ANEMONE_MATH_ELEMENTWISE_ELEMENTWISE_H_
#define ANEMONE_MATH_ELEMENTWISE_ELEMENTWISE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/core/half.h"

namespace anemone::math {

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,  // zero times an infinity or NaN is +0 (numerics.json st-nan-gen), so that masks work
  kDiv,  // correctly rounded quotient
  kMin,  // min and max give a NaN if either operand is one
  kMax,
  kSquaredDifference,
  kPow,       // in double, rounded once
  kFloorDiv,  // floor of the quotient
  kMod,       // a - b * floor(a / b), with the sign of the divisor
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,  // logical; true is "not zero"
  kOr,
  kXor,
};

void Binary(BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
            absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
            const Extents& out_extents);

// The scalar function of an operation that has no vector form (kPow, kMod); null for the others.
double (*ScalarFunction(BinaryOp op))(double, double);

// out = condition != 0 ? a : b. Bits are unchanged.
void Select(absl::Span<const Half> condition, const Extents& condition_extents,
            absl::Span<const Half> a, const Extents& a_extents, absl::Span<const Half> b,
            const Extents& b_extents, absl::Span<Half> out, const Extents& out_extents);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_ELEMENTWISE_H_
