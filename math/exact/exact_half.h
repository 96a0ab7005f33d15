// math/exact/exact_half.h: storing a result as the silicon does, in `exact` mode.
//
//   Half y = Stored(2049.0, numerics);   // 2048 on A13 (ties to even), 2050 on A16 (ties away)
//   Half z = Stored(NAN, numerics);      // +0: the engine answers every indeterminate form so
//
// Rules: numerics.json st-round-out, st-overflow, st-nan-gen, st-inf (IEEE's, but for NaN).
#ifndef ANEMONE_MATH_EXACT_EXACT_HALF_H_
#define ANEMONE_MATH_EXACT_EXACT_HALF_H_

#include <cmath>
#include <limits>

#include "math/core/half.h"
#include "numerics.h"  // generated

namespace anemone::math {

// Of a value known exactly, or to so many more bits than a Half has that the rounding is right.
inline Half Stored(double value, const Numerics& n) {
  if (std::isnan(value)) return kHalfZero;
  const double magnitude = std::abs(value);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (n.st_overflow == StOverflow::kStrict && magnitude > 65504.0) {
    return {static_cast<uint16_t>(sign | kHalfInfinity.bits)};
  }
  Half nearest = ToHalf(magnitude);
  if (n.st_round_out != StRoundOut::kRne && !IsInfinite(nearest)) {
    // Ties went to the even neighbour below; half-away and sticky take the one above.
    const double below = ToDouble(nearest);
    const Half next{static_cast<uint16_t>(nearest.bits + 1)};
    const double above = IsInfinite(next) ? 65536.0 : ToDouble(next);
    if (magnitude - below == above - magnitude) nearest = next;
  }
  return {static_cast<uint16_t>(sign | nearest.bits)};
}

// The same of vectors (exact_half-inl.h).
struct StorageRule {
  bool ties_away;
  float most;  // beyond it a number is infinite before it is rounded
};

inline StorageRule StorageOf(const Numerics& n) {
  return {n.st_round_out != StRoundOut::kRne,
          n.st_overflow == StOverflow::kStrict ? 65504.0f : std::numeric_limits<float>::infinity()};
}

// Through storage and back.
inline double Rounded(double value, const Numerics& n) { return ToDouble(Stored(value, n)); }

inline bool IsSubnormal(Half h) { return (h.bits & 0x7c00) == 0 && (h.bits & 0x3ff) != 0; }

}  // namespace anemone::math

#endif  // ANEMONE_MATH_EXACT_EXACT_HALF_H_
