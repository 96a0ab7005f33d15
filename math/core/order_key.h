// math/core/order_key.h: integers that compare as Halfs do. Internal.
#ifndef ANEMONE_MATH_CORE_ORDER_KEY_H_
#define ANEMONE_MATH_CORE_ORDER_KEY_H_

#include <cstdint>

#include "math/core/half.h"

namespace anemone::math {

// -32767..32767, the larger the number the larger; 0 for both zeros.
inline int16_t OrderKey(Half x) {
  const int magnitude = x.bits & 0x7fff;
  return static_cast<int16_t>(x.bits & 0x8000 ? -magnitude : magnitude);
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_ORDER_KEY_H_
