// math/core/half.h: Half, the engine's number format (IEEE binary16), and scalar conversions.
//
//   Half h = ToHalf(0.1f);        // bits 0x2e66, ties to even
//   float f = ToFloat(h);         // 0.0999755859375, exact
//   ToHalf(70000.0f);             // +inf: overflow is never clamped to 65504
//
// convert.h converts arrays. Half has no arithmetic operators on purpose: code widens to fp32,
// computes, and rounds once with ToHalf(), so that every rounding is visible.
#ifndef ANEMONE_MATH_CORE_HALF_H_
#define ANEMONE_MATH_CORE_HALF_H_

#include <cstdint>
#include <cstring>

namespace anemone::math {

struct Half {
  uint16_t bits = 0;

  // Compares bits, not values: 0 and -0 differ, and a NaN equals itself.
  friend bool operator==(Half a, Half b) { return a.bits == b.bits; }
  friend bool operator!=(Half a, Half b) { return a.bits != b.bits; }
};

inline constexpr Half kHalfZero{0x0000};
inline constexpr Half kHalfOne{0x3c00};
inline constexpr Half kHalfMax{0x7bff};  // 65504
inline constexpr Half kHalfInfinity{0x7c00};
inline constexpr Half kHalfNan{0x7e00};

inline bool IsNan(Half h) { return (h.bits & 0x7fff) > 0x7c00; }
inline bool IsInfinite(Half h) { return (h.bits & 0x7fff) == 0x7c00; }

// Exact for every Half, also for subnormals and infinities. A NaN becomes a quiet NaN.
float ToFloat(Half h);
inline double ToDouble(Half h) { return ToFloat(h); }

// Rounds once, ties to even. |x| >= 65520 becomes an infinity. A NaN stays a NaN. The sign is kept.
// The overload for double does not round to float first.
Half ToHalf(float x);
Half ToHalf(double x);

// The value of `x` after rounding to Half.
inline float RoundToHalf(float x) { return ToFloat(ToHalf(x)); }

inline float ToFloat(Half h) {
  // The bits of a binary16, shifted to the fields of a binary32, are the value times 2^-112.
  // Multiplying by 2^112 restores the value and normalizes subnormals. For infinity and NaN the
  // exponent field is filled instead.
  uint32_t magnitude = static_cast<uint32_t>(h.bits & 0x7fff) << 13;
  float value;
  if (magnitude >= 0x0f800000) {
    magnitude |= 0x7f800000;
    if (magnitude > 0x7f800000) magnitude |= 0x00400000;
    std::memcpy(&value, &magnitude, sizeof(value));
  } else {
    std::memcpy(&value, &magnitude, sizeof(value));
    value *= 0x1p112f;
  }
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits |= static_cast<uint32_t>(h.bits & 0x8000) << 16;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline Half ToHalf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {
    return {static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff))};
  }
  if (magnitude >= 0x47800000) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65536 and above
  if (magnitude < 0x38800000) {
    // Below 2^-14. Adding 0.5 aligns the last bit of a subnormal Half with the last bit of the
    // float, so that the addition rounds.
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    std::memcpy(&bits, &shifted, sizeof(bits));
    return {static_cast<uint16_t>(sign | (bits - 0x3f000000))};
  }
  // Rebias the exponent by 127 - 15 and round. A carry out of the mantissa increments the exponent,
  // up to infinity, which is correct.
  const uint32_t odd = (magnitude >> 13) & 1;
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13))};
}

inline Half ToHalf(double x) {
  // Round to odd when converting to float. The odd last bit tells the second rounding that bits
  // were cut off, so that the two roundings give the result of one.
  float nearest = static_cast<float>(x);
  if (static_cast<double>(nearest) == x || x != x) return ToHalf(nearest);
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  const bool away = (x < 0) ? nearest < x : nearest > x;
  if (away) --bits;  // truncates towards zero; turns infinity into the largest float
  bits |= 1;
  std::memcpy(&nearest, &bits, sizeof(nearest));
  return ToHalf(nearest);
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_HALF_H_
