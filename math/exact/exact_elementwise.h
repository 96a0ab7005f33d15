// math/exact/exact_elementwise.h: operations on two arrays in `exact` mode (numerics.json
// ew-sub, ew-mul, ew-div, ew-floordiv, ew-pow, sat-wslice). Every unit rounds once, as a result is
// stored (ew-round, exact_half.h); subnormals are numbers like others (st-subnormal-ew).
//
//   ExactBinary(numerics, BinaryOp::kAdd, a, x, b, x, y, x);   // as Binary() of elementwise.h
//   ExactAffine(numerics, /*rounds_product=*/true, x, 0.5f, 1.0f, y);
#ifndef ANEMONE_MATH_EXACT_EXACT_ELEMENTWISE_H_
#define ANEMONE_MATH_EXACT_EXACT_ELEMENTWISE_H_

#include "absl/types/span.h"
#include "math/core/extents.h"
#include "math/elementwise/elementwise.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

void ExactBinary(const Numerics& n, BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
                 absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
                 const Extents& out_extents);

// f16(f16(in * scale) + bias), or one rounding; scale and bias are rounded to Halfs. A scale of 1
// and a bias of 0 are no steps.
void ExactAffine(const Numerics& n, bool rounds_product, absl::Span<const Half> in, float scale,
                 float bias, absl::Span<Half> out);

// What a slice that begins inside the width does to its elements (sat-wslice): storage times a
// gain.
void ThroughWidthSlice(const Numerics& n, absl::Span<Half> values);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_ELEMENTWISE_H_
