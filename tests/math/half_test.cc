#include "math/core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace anemone::math {
namespace {

// The value by the definition of binary16.
double Defined(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  if (exponent == 31) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryValueIsExact) {
  for (int bits = 0; bits < 65536; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    const double value = Defined(half.bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(ToFloat(half)));
      EXPECT_TRUE(IsNan(ToHalf(ToFloat(half))));
      EXPECT_EQ(std::signbit(ToFloat(half)), (bits & 0x8000) != 0);
      continue;
    }
    ASSERT_EQ(ToDouble(half), value) << bits;
    ASSERT_EQ(ToHalf(ToFloat(half)).bits, bits);
    ASSERT_EQ(ToHalf(value).bits, bits);
  }
}

TEST(Half, MidpointsGoToEvenAndNeighboursToTheNearer) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = Defined(bits), high = Defined(bits + 1);
    const double middle = (low + high) / 2;  // exact in float and double
    const uint16_t even = static_cast<uint16_t>(bits + bits % 2);
    ASSERT_EQ(ToHalf(middle).bits, even) << bits;
    ASSERT_EQ(ToHalf(static_cast<float>(middle)).bits, even) << bits;
    ASSERT_EQ(ToHalf(static_cast<float>(-middle)).bits, even | 0x8000) << bits;
    ASSERT_EQ(ToHalf(std::nextafter(middle, 0.0)).bits, bits);
    ASSERT_EQ(ToHalf(std::nextafter(middle, 1e9)).bits, bits + 1);
    ASSERT_EQ(ToHalf(std::nextafter(static_cast<float>(middle), 0.0f)).bits, bits);
    ASSERT_EQ(ToHalf(std::nextafter(static_cast<float>(middle), 1e9f)).bits, bits + 1);
  }
}

TEST(Half, OverflowIsInfinity) {
  EXPECT_EQ(ToHalf(65519.0f), kHalfMax);
  EXPECT_EQ(ToHalf(65520.0f), kHalfInfinity);
  EXPECT_EQ(ToHalf(std::nextafter(65520.0, 0.0)), kHalfMax);
  EXPECT_EQ(ToHalf(-1e30f).bits, 0xfc00);
  EXPECT_EQ(ToHalf(1e300), kHalfInfinity);
  EXPECT_EQ(ToHalf(-std::numeric_limits<double>::infinity()).bits, 0xfc00);
}

TEST(Half, TinyIsZeroOfItsSign) {
  EXPECT_EQ(ToHalf(0x1p-25f).bits, 0);  // a tie with the even 0
  EXPECT_EQ(ToHalf(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(ToHalf(0x1.0000000000001p-25).bits, 1);
  EXPECT_EQ(ToHalf(-1e-300).bits, 0x8000);
  EXPECT_EQ(ToHalf(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(Half, ConvertsDoubleWithOneRounding) {
  // Rounding to float first would give a tie, which rounds to even.
  EXPECT_EQ(ToHalf(1.0 + 0x1p-11 + 0x1p-40).bits, 0x3c01);
  EXPECT_EQ(ToHalf(-(1.0 + 0x1p-11 + 0x1p-40)).bits, 0xbc01);
  EXPECT_EQ(ToHalf(1.0 + 0x3p-11 - 0x1p-40).bits, 0x3c01);
}

}  // namespace
}  // namespace anemone::math
