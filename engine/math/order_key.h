// engine/math/order_key.h: integers that compare as Halfs do. Internal.
#ifndef ENGINE_MATH_ORDER_KEY_H_
#define ENGINE_MATH_ORDER_KEY_H_

#include <cstdint>

#include "engine/math/half.h"

namespace anemone::math {

// -32767..32767, the larger the number the larger; 0 for both zeros.
inline int16_t OrderKey(Half x) {
  const int magnitude = x.bits & 0x7fff;
  return static_cast<int16_t>(x.bits & 0x8000 ? -magnitude : magnitude);
}

}  // namespace anemone::math

#endif  // ENGINE_MATH_ORDER_KEY_H_
