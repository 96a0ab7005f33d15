#include "base/float_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace anemone {
namespace {

constexpr int64_t kLanes = 4;
using Floats = float __attribute__((vector_size(kLanes * 4)));
using Bits = int32_t __attribute__((vector_size(kLanes * 4)));
using Doubles = double __attribute__((vector_size(kLanes * 8)));

template <class Vector>
Vector Load(const std::byte* floats, int64_t i) {
  Vector loaded;
  std::memcpy(&loaded, floats + i * static_cast<int64_t>(sizeof(float)), sizeof(loaded));
  return loaded;
}

float At(const std::byte* floats, int64_t i) { return Load<float>(floats, i); }

bool AnyOf(const Bits& bits) { return (bits[0] | bits[1] | bits[2] | bits[3]) != 0; }

// Calls vector(i) for the first element of every whole vector, and rest(i) for the elements after.
template <class ForVector, class ForRest>
void ForEach(int64_t count, const ForVector& vector, const ForRest& rest) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) vector(i);
  for (; i < count; ++i) rest(i);
}

constexpr int32_t kExponent = 0x7f800000, kMagnitude = 0x7fffffff;

}  // namespace

FloatLimits LimitsOfFloats(const std::byte* floats, int64_t count) {
  FloatLimits limits;
  Floats low = Floats{} + limits.low, high = Floats{} + limits.high;
  Bits nan = {};
  const auto add = [&](float x) {
    limits.low = std::min(limits.low, x);  // a NaN is not less
    limits.high = std::max(limits.high, x);
    limits.has_nan |= std::isnan(x);
  };
  ForEach(
      count,
      [&](int64_t i) {
        const auto x = Load<Floats>(floats, i);
        low = x < low ? x : low;
        high = x > high ? x : high;
        nan |= (Load<Bits>(floats, i) & kMagnitude) > kExponent;
      },
      [&](int64_t i) { add(At(floats, i)); });
  for (int64_t i = 0; i < kLanes; ++i) {
    limits.low = std::min(limits.low, low[i]);
    limits.high = std::max(limits.high, high[i]);
  }
  limits.has_nan |= AnyOf(nan);
  return limits;
}

FloatLimits LimitsOfHalves(const std::byte* halves, int64_t count) {
  constexpr int64_t kKeys = 8;
  using Keys = int16_t __attribute__((vector_size(kKeys * 2)));
  constexpr int16_t kInfinity = 0x7c00, kMinusInfinity = ~kInfinity;
  Keys low = Keys{} + kInfinity, high = Keys{} + kMinusInfinity, nan = {};
  for (int64_t i = 0; i < count; i += kKeys) {
    int16_t bits[kKeys];
    const int64_t here = std::min(kKeys, count - i);
    std::memcpy(bits, halves + i * 2, here * 2);
    std::fill(bits + here, bits + kKeys, bits[0]);
    Keys key;
    std::memcpy(&key, bits, sizeof(key));
    key ^= (key >> 15) & 0x7fff;  // compares like the number; the key of -x is ~(key of x)
    const Keys is_nan = (key > kInfinity) | (key < kMinusInfinity);
    nan |= is_nan;
    const Keys least = is_nan ? low : key, most = is_nan ? high : key;
    low = least < low ? least : low;
    high = most > high ? most : high;
  }
  FloatLimits limits;
  const auto number = [](int16_t key) {
    const int bits = key < 0 ? ~key : key;  // the same fields as a float's, with another exponent
    const float magnitude = bits == kInfinity ? std::numeric_limits<float>::infinity()
                                              : std::bit_cast<float>(bits << 13) * 0x1p112f;
    return key < 0 ? -magnitude : magnitude;
  };
  for (int64_t i = 0; i < kKeys; ++i) {
    limits.low = std::min(limits.low, number(low[i]));
    limits.high = std::max(limits.high, number(high[i]));
    limits.has_nan |= nan[i] != 0;
  }
  return limits;
}

void ScaleFloats(const std::byte* floats, int64_t count, double factor, float* to) {
  ForEach(
      count,
      [&](int64_t i) {
        const Doubles wide = __builtin_convertvector(Load<Floats>(floats, i), Doubles) * factor;
        const Floats scaled = __builtin_convertvector(wide, Floats);
        std::memcpy(to + i, &scaled, sizeof(scaled));
      },
      [&](int64_t i) { to[i] = static_cast<float>(At(floats, i) * factor); });
}

FloatsLost CountLost(const std::byte* before, const std::byte* after, int64_t count, float least,
                     float most) {
  // Magnitudes compare like integers. NaNs are above infinity there, and count as too large.
  Bits low, high;
  const Floats limits[] = {Floats{} + least, Floats{} + most};
  std::memcpy(&low, &limits[0], sizeof(low));
  std::memcpy(&high, &limits[1], sizeof(high));
  Bits below = {}, above = {};
  const auto add = [&](const Bits& was, const Bits& now) {
    below -= (now < low) & (was >= low);
    above -= (now > high) & (was <= high);
  };
  ForEach(
      count,
      [&](int64_t i) {
        add(Load<Bits>(before, i) & kMagnitude, Load<Bits>(after, i) & kMagnitude);
      },
      [&](int64_t i) {  // the other lanes are 0 before and after
        add(Bits{Load<int32_t>(before, i) & kMagnitude},
            Bits{Load<int32_t>(after, i) & kMagnitude});
      });
  FloatsLost lost;
  for (int64_t i = 0; i < kLanes; ++i) {
    lost.below += below[i];
    lost.above += above[i];
  }
  return lost;
}

}  // namespace anemone
