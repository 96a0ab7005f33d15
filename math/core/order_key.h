// math/core/order_key.h: maps Halfs to integers that have the same order. Internal.
#ifndef ANEMONE_MATH_CORE_ORDER_KEY_H_
#define ANEMONE_MATH_CORE_ORDER_KEY_H_

#include <cstdint>

#include "math/core/half.h"

namespace anemone::math {

// Returns -32767 to 32767, which increases with the value of `x`; 0 for both zeros.
inline int16_t OrderKey(Half x) {
  const int magnitude = x.bits & 0x7fff;
  return static_cast<int16_t>(x.bits & 0x8000 ? -magnitude : magnitude);
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_ORDER_KEY_H_
