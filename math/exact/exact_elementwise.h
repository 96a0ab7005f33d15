// math/exact/exact_elementwise.h: elementwise operations on two arrays in `exact` mode
// (numerics.json ew-sub, ew-mul, ew-div, ew-floordiv, ew-pow, sat-wslice). Every unit rounds once,
// when it stores its result (ew-round, exact_half.h). Subnormals are not flushed (st-subnormal-ew).
//
//   // As Binary() of elementwise.h.
//   ExactBinary(numerics, BinaryOp::kAdd, a, extents, b, extents, y, extents);
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

// f16(f16(in * scale) + bias), or with one rounding if not `rounds_product`. Scale and bias are
// rounded to Half first. A scale of 1 or a bias of 0 is skipped.
void ExactAffine(const Numerics& n, bool rounds_product, absl::Span<const Half> in, float scale,
                 float bias, absl::Span<Half> out);

// Applies in place what the engine does to elements of a slice that begins inside the width: they
// are multiplied by a gain and stored (sat-wslice).
void ThroughWidthSlice(const Numerics& n, absl::Span<Half> values);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_ELEMENTWISE_H_
