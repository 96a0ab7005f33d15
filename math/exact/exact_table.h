// math/exact/exact_table.h: elementwise functions of one argument in `exact` mode (numerics.json
// tbl-list, tbl-special, tbl-bias, tbl-sigmoid, ew-sqrt, ew-exp, ew-log, ew-trig, ew-round-op,
// ew-softplus, ew-softsign, st-zero, st-subnormal-table).
//
//   Half y = ExactFunction({Unary::kGelu}, x, numerics);
//   auto table = ExactTableFor({Unary::kGelu}, numerics);   // for all 65,536 Halfs
//
// The engine interpolates tables, whose knots are not published. Here a function is computed and
// rounded once, and its observed special values replace the computed ones (option `rounded` of
// tbl-knots). The options `sampled` and `device` behave as `rounded`, because they need the knots.
#ifndef ANEMONE_MATH_EXACT_EXACT_TABLE_H_
#define ANEMONE_MATH_EXACT_EXACT_TABLE_H_

#include <memory>

#include "math/elementwise/unary.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

Half ExactFunction(const UnaryKey& key, Half x, const Numerics& n);

// Tables are cached. For kLog2, the result is multiplied by alpha (unless that is 0) and beta is
// added before rounding.
std::shared_ptr<const UnaryTable> ExactTableFor(const UnaryKey& key, const Numerics& n);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_TABLE_H_
