// base/fp16.h: the limits of fp16 (IEEE binary16), the only number format of values between units.
#ifndef ANEMONE_BASE_FP16_H_
#define ANEMONE_BASE_FP16_H_

#include <cstdint>

namespace anemone::fp16 {

inline constexpr float kLargest = 65504;  // finite; math::ToHalf() rounds 65520 to infinity
inline constexpr float kLowest = -kLargest;
inline constexpr float kSmallestNormal = 0x1p-14f;
inline constexpr float kSmallest = 0x1p-24f;  // subnormal; all subnormals are multiples of it

inline constexpr float kRoundingError = 0x1p-11f;  // of one rounding at most, relative

// All integers up to this one are fp16 numbers, the next one is not.
inline constexpr int64_t kLargestExactInteger = 2048;

}  // namespace anemone::fp16

#endif  // ANEMONE_BASE_FP16_H_
