// math/exact/exact_table.h: functions of one element in `exact` mode (numerics.json tbl-list,
// tbl-special, tbl-bias, tbl-sigmoid, ew-sqrt, ew-exp, ew-log, ew-trig, ew-round-op, ew-softplus,
// ew-softsign, st-zero, st-subnormal-table).
//
//   Half y = ExactFunction({Unary::kGelu}, x, numerics);
//   auto table = ExactTableFor({Unary::kGelu}, numerics);   // of all 65,536 Halfs
//
// No knot of a table is published: a function is computed and rounded once, then what was seen of
// its special values is put in (option `rounded` of tbl-knots; `sampled` and `device` would need
// knots, and are as `rounded`).
#ifndef ANEMONE_MATH_EXACT_EXACT_TABLE_H_
#define ANEMONE_MATH_EXACT_EXACT_TABLE_H_

#include <memory>

#include "math/elementwise/unary.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

Half ExactFunction(const UnaryKey& key, Half x, const Numerics& n);

// Kept for later callers. Of kLog2 alpha and beta are a gain and an addend, done before it is
// rounded; a gain of 0 is none.
std::shared_ptr<const UnaryTable> ExactTableFor(const UnaryKey& key, const Numerics& n);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_TABLE_H_
