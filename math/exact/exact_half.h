// math/exact/exact_half.h: rounds a result to fp16 as the silicon stores it, in `exact` mode.
//
//   Half y = Stored(2049.0, numerics);   // 2048 on A13 (ties to even), 2050 on A16 (ties away)
//   Half z = Stored(NAN, numerics);      // +0: the engine's result of every indeterminate form
//
// Rules: numerics.json st-round-out, st-overflow, st-nan-gen, st-inf (as IEEE except for NaN).
#ifndef ANEMONE_MATH_EXACT_EXACT_HALF_H_
#define ANEMONE_MATH_EXACT_EXACT_HALF_H_

#include <cmath>
#include <limits>

#include "base/fp16.h"
#include "math/core/half.h"
#include "numerics.h"  // generated

namespace anemone::math {

// `value` must be exact, or have enough bits more than a Half that rounding it is correct.
inline Half Stored(double value, const Numerics& n) {
  if (std::isnan(value)) return kHalfZero;
  const double magnitude = std::abs(value);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (n.st_overflow == StOverflow::kStrict && magnitude > fp16::kLargest) {
    return {static_cast<uint16_t>(sign | kHalfInfinity.bits)};
  }
  Half nearest = ToHalf(magnitude);
  if (n.st_round_out != StRoundOut::kRne && !IsInfinite(nearest)) {
    // ToHalf() rounded a tie to even, perhaps to the neighbor below. The options half-away and
    // sticky take the neighbor above.
    const double below = ToDouble(nearest);
    const Half next{static_cast<uint16_t>(nearest.bits + 1)};
    const double above = IsInfinite(next) ? 65536.0 : ToDouble(next);
    if (magnitude - below == above - magnitude) nearest = next;
  }
  return {static_cast<uint16_t>(sign | nearest.bits)};
}

// The rules of Stored() for vectors (exact_half-inl.h).
struct StorageRule {
  bool ties_away;
  float most;  // numbers beyond it become infinite before rounding
};

inline StorageRule StorageOf(const Numerics& n) {
  return {n.st_round_out != StRoundOut::kRne, n.st_overflow == StOverflow::kStrict
                                                  ? fp16::kLargest
                                                  : std::numeric_limits<float>::infinity()};
}

// The value after storage.
inline double Rounded(double value, const Numerics& n) { return ToDouble(Stored(value, n)); }

inline bool IsSubnormal(Half h) { return (h.bits & 0x7c00) == 0 && (h.bits & 0x3ff) != 0; }

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_HALF_H_
