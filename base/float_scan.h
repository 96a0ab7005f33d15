// base/float_scan.h: passes over many numbers, such as the weights of a model. They may be
// at any address: in a model's file they begin anywhere.
//
//   const FloatLimits limits = LimitsOfFloats(floats, count);
#ifndef ANEMONE_BASE_FLOAT_SCAN_H_
#define ANEMONE_BASE_FLOAT_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>

namespace anemone {

struct FloatLimits {
  // The least and the largest number that is not a NaN; infinities, the first above the second, if
  // there is none.
  float low = std::numeric_limits<float>::infinity(), high = -low;
  bool has_nan = false;
};
FloatLimits LimitsOfFloats(const std::byte* floats, int64_t count);
FloatLimits LimitsOfHalves(const std::byte* halves, int64_t count);  // of float16 numbers

// to[i] = float(floats[i] * factor): the product is computed in double.
void ScaleFloats(const std::byte* floats, int64_t count, double factor, float* to);

// How many numbers leave the interval from `least` to `most` (above 0) by their magnitude.
struct FloatsLost {
  int64_t below = 0;  // from `least` or more to less
  int64_t above = 0;  // from `most` or less to more
};
// For at most 2^32 numbers.
FloatsLost CountLost(const std::byte* before, const std::byte* after, int64_t count, float least,
                     float most);

}  // namespace anemone

#endif  // ANEMONE_BASE_FLOAT_SCAN_H_
