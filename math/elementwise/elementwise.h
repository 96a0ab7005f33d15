// math/elementwise/elementwise.h: operations on two or three arrays, element by element.
//
//   Extents x = {1, 1, 64, 56, 56}, bias = {1, 1, 64, 1, 1};
//   Binary(BinaryOp::kAdd, a, x, b, bias, y, x);          // b is repeated over H and W
//   Select(mask, x, a, x, zero, {1, 1, 1, 1, 1}, y, x);   // mask != 0 ? a : 0
//
// Each operand's extent is the result's or 1, axis by axis (which is also how a scalar is given).
// Every element is computed in fp32 and rounded once; comparisons give 1 or 0. The result may be
// the same array as an operand that is not repeated, so that a unit can work in place.
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
  kMul,  // zero times what is not finite is +0 (numerics.json st-nan-gen): masks multiply
  kDiv,  // correctly rounded quotient
  kMin,  // min and max give a NaN if either operand is one
  kMax,
  kSquaredDifference,
  kPow,       // in double, rounded once
  kFloorDiv,  // floor of the quotient
  kMod,       // sign of the divisor: a - b * floor(a / b)
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,  // logical, on "not zero"
  kOr,
  kXor,
};

void Binary(BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
            absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
            const Extents& out_extents);

// What has no vector form, of two numbers; null: it has.
double (*ScalarFunction(BinaryOp op))(double, double);

// out = condition is not zero ? a : b, bits unchanged.
void Select(absl::Span<const Half> condition, const Extents& condition_extents,
            absl::Span<const Half> a, const Extents& a_extents, absl::Span<const Half> b,
            const Extents& b_extents, absl::Span<Half> out, const Extents& out_extents);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_ELEMENTWISE_H_
