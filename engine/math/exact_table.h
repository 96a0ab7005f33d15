// engine/math/exact_table.h: functions of one element and of two in `exact` mode (numerics.json
// tbl-*, ew-*, st-zero, st-subnormal-table).
//
//   double y = ExactFunction({Unary::kGelu}, ToDouble(x), numerics);     // before it is stored
//   auto table = ExactTableFor({Unary::kGelu}, numerics);                // of all 65,536 Halves
//   ExactBinary(numerics, BinaryOp::kAdd, a, x, b, x, y, x);
//
// No knot of a table is published: a function is computed and rounded once, then what was seen of
// its special values is put in (option `rounded` of tbl-knots; `sampled` and `device` would need
// knots, and are as `rounded`).
#ifndef ENGINE_MATH_EXACT_TABLE_H_
#define ENGINE_MATH_EXACT_TABLE_H_

#include <memory>

#include "absl/types/span.h"
#include "engine/math/elementwise.h"
#include "engine/math/exact_half.h"
#include "engine/math/extents.h"
#include "engine/math/unary.h"

namespace anemone::math {

Half ExactFunction(const UnaryKey& key, Half x, const Numerics& n);

std::shared_ptr<const UnaryTable> ExactTableFor(const UnaryKey& key, const Numerics& n);

// As Binary() of elementwise.h.
void ExactBinary(const Numerics& n, BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
                 absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
                 const Extents& out_extents);

// Half(Half(in * scale) + bias), or one rounding (numerics.json mac-epilogue).
void ExactAffine(const Numerics& n, absl::Span<const Half> in, float scale, float bias,
                 absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ENGINE_MATH_EXACT_TABLE_H_
