#include "math/move/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "math/move/counted_convert.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST(Convert, HalfToFloatIsExactForEveryValue) {
  std::vector<Half> halves(65536);
  for (int i = 0; i < 65536; ++i) halves[i].bits = static_cast<uint16_t>(i);
  ForEachSimdTarget([&] {
    std::vector<float> floats(halves.size());
    HalfToFloat(halves, absl::MakeSpan(floats));
    for (int i = 0; i < 65536; ++i) ASSERT_EQ(Bits(floats[i]), Bits(ToFloat(halves[i]))) << i;
  });
}

TEST(Convert, FloatToHalfRoundsLikeTheScalarForm) {
  std::vector<float> floats;
  for (int i = 0; i < 0x7c00; ++i) {  // each Half, the midpoint above it, and their neighbors
    const float value = ToFloat({static_cast<uint16_t>(i)});
    const float middle = (value + ToFloat({static_cast<uint16_t>(i + 1)})) / 2;
    for (float f : {value, middle}) {
      for (float g : {f, std::nextafter(f, -1.0f), std::nextafter(f, 1e30f)}) {
        floats.push_back(g);
        floats.push_back(-g);
      }
    }
  }
  for (float f : {1e-40f, 65519.996f, 65520.0f, 65536.0f, 1e38f}) {
    floats.push_back(f);
    floats.push_back(-f);
  }
  floats.push_back(std::numeric_limits<float>::infinity());
  floats.push_back(std::nanf("1"));
  ForEachSimdTarget([&] {
    std::vector<Half> halves(floats.size());
    FloatToHalf(floats, absl::MakeSpan(halves));
    for (size_t i = 0; i < floats.size(); ++i) {
      ASSERT_EQ(halves[i].bits, ToHalf(floats[i]).bits) << floats[i];
    }
  });
}

TEST(Convert, PortRuleMakesEveryNanPositiveInfinity) {
  ForEachSimdTarget([] {
    for (int64_t size : EdgeSizes()) {
      std::vector<float> floats(size, -std::nanf("7"));
      floats[0] = -2.0f;
      std::vector<Half> halves(size);
      FloatToHalf(floats, absl::MakeSpan(halves), NanRule::kToInfinity);
      EXPECT_EQ(halves[0], ToHalf(-2.0f));
      for (int64_t i = 1; i < size; ++i) ASSERT_EQ(halves[i], kHalfInfinity);
    }
  });
  const uint16_t nans[] = {0x7fc0, 0xffff, 0x3f80};
  Half halves[3];
  Convert(3, Element::kBFloat16, nans, Element::kHalf, halves, NanRule::kToInfinity);
  EXPECT_EQ(halves[0], kHalfInfinity);
  EXPECT_EQ(halves[1], kHalfInfinity);
  EXPECT_EQ(halves[2], kHalfOne);
  const Half in[] = {kHalfNan, kHalfOne};
  Convert(2, Element::kHalf, in, Element::kHalf, halves, NanRule::kToInfinity);
  EXPECT_EQ(halves[0], kHalfInfinity);
  EXPECT_EQ(halves[1], kHalfOne);
}

// The elements before the first and after the last must not change.
TEST(Convert, TouchesNothingOutside) {
  ForEachSimdTarget([] {
    for (int64_t size : EdgeSizes()) {
      const std::vector<float> floats = Floats(size);
      std::vector<Half> halves(size + 2, Half{0x1234});
      FloatToHalf(floats, absl::MakeSpan(halves).subspan(1, size));
      EXPECT_EQ(halves.front().bits, 0x1234);
      EXPECT_EQ(halves.back().bits, 0x1234);
      std::vector<float> back(size + 2, 77.0f);
      HalfToFloat(absl::MakeSpan(halves).subspan(1, size), absl::MakeSpan(back).subspan(1, size));
      EXPECT_EQ(back.front(), 77.0f);
      EXPECT_EQ(back.back(), 77.0f);
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(back[i + 1], floats[i]);
    }
  });
}

template <class T>
T FromHalf(float value, Element element) {
  const Half half = ToHalf(value);
  T result;
  Convert(1, Element::kHalf, &half, element, &result);
  return result;
}

TEST(Convert, IntegersSaturateAndRoundToEven) {
  EXPECT_EQ(FromHalf<uint8_t>(2.5f, Element::kUInt8), 2);
  EXPECT_EQ(FromHalf<uint8_t>(3.5f, Element::kUInt8), 4);
  EXPECT_EQ(FromHalf<uint8_t>(-1.0f, Element::kUInt8), 0);
  EXPECT_EQ(FromHalf<uint8_t>(300.0f, Element::kUInt8), 255);
  EXPECT_EQ(FromHalf<int8_t>(-300.0f, Element::kInt8), -128);
  EXPECT_EQ(FromHalf<int16_t>(1e9f, Element::kInt16), 32767);
  EXPECT_EQ(FromHalf<int64_t>(-HUGE_VALF, Element::kInt64), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(FromHalf<uint64_t>(HUGE_VALF, Element::kUInt64), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(FromHalf<int32_t>(std::nanf(""), Element::kInt32), 0);
  EXPECT_EQ(FromHalf<int32_t>(-65504.0f, Element::kInt32), -65504);
  EXPECT_EQ(FromHalf<uint8_t>(0.0f, Element::kBool), 0);
  EXPECT_EQ(FromHalf<uint8_t>(-0.25f, Element::kBool), 1);
  EXPECT_EQ(FromHalf<double>(-0.25f, Element::kDouble), -0.25);
  EXPECT_EQ(FromHalf<uint16_t>(1.0f, Element::kBFloat16), 0x3f80);
  EXPECT_EQ(FromHalf<uint16_t>(ToFloat({0x3c01}), Element::kBFloat16), 0x3f80);
}

TEST(Convert, IntegersBecomeHalvesWithOneRounding) {
  const int64_t values[] = {0, -3, 2049, 2051, 65519, 65520, std::numeric_limits<int64_t>::min()};
  const float want[] = {0, -3, 2048, 2052, 65504, HUGE_VALF, -HUGE_VALF};
  Half halves[7];
  Convert(7, Element::kInt64, values, Element::kHalf, halves);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(ToFloat(halves[i]), want[i]);
  const uint8_t flags[] = {0, 1, 2, 255};
  Convert(4, Element::kBool, flags, Element::kHalf, halves);
  EXPECT_EQ(halves[0], kHalfZero);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(halves[i], kHalfOne);
}

TEST(Convert, ReadsUnalignedData) {
  ForEachSimdTarget([] {
    const std::vector<float> floats = Floats(37);
    std::vector<char> bytes(37 * 4 + 1);
    std::memcpy(bytes.data() + 1, floats.data(), 37 * 4);
    std::vector<Half> halves(37);
    Convert(37, Element::kFloat, bytes.data() + 1, Element::kHalf, halves.data());
    for (int i = 0; i < 37; ++i) ASSERT_EQ(ToFloat(halves[i]), floats[i]);
    Convert(37, Element::kHalf, halves.data(), Element::kFloat, bytes.data() + 1);
    std::vector<float> back(37);
    std::memcpy(back.data(), bytes.data() + 1, 37 * 4);
    EXPECT_EQ(back, floats);
  });
}

TEST(Convert, PacksRowsOfASurfaceAndBack) {
  const Extents extents = {2, 1, 3, 5, 7};
  const std::vector<float> floats = Floats(Count(extents));
  const Layout surface{Element::kHalf, {1024, 1024, 320, 64, 2}};
  std::vector<Half> halves(1024, Half{0x7777});
  ConvertStrided(extents, floats.data(), DenseLayout(Element::kFloat, extents), halves.data(),
                 surface);
  EXPECT_EQ(halves[32 * 3 + 5], ToHalf(floats[7 * 3 + 5]));
  EXPECT_EQ(halves[512 + 160 * 2 + 32 * 4 + 6], ToHalf(floats[105 + 70 + 28 + 6]));
  EXPECT_EQ(halves[7].bits, 0x7777);  // nothing is written between rows
  std::vector<float> back(floats.size());
  ConvertStrided(extents, halves.data(), surface, back.data(),
                 DenseLayout(Element::kFloat, extents));
  EXPECT_EQ(back, floats);
}

TEST(Convert, CountsNumbersThatFp16CannotHold) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> floats(50000);  // several parts of a parallel conversion
  const float set[] = {65504, 65519.99f, 65520, -65520, 1e30f, kInf, -kInf, kNan};
  std::copy(std::begin(set), std::end(set), floats.begin() + 20000);
  std::vector<Half> halves(floats.size());
  Tally tally;
  Convert(50000, Element::kFloat, floats.data(), Element::kHalf, halves.data(),
          NanRule::kToInfinity, &tally);
  EXPECT_EQ(tally.overflowed, 4);
  EXPECT_EQ(tally.not_finite, 0);
  Tally kept;
  Convert(50000, Element::kFloat, floats.data(), Element::kHalf, halves.data(), NanRule::kKeep,
          &kept);
  EXPECT_EQ(kept.overflowed, 3);
  Convert(50000, Element::kHalf, halves.data(), Element::kFloat, floats.data(), NanRule::kKeep,
          &tally);
  EXPECT_EQ(tally.not_finite, 6);
  const std::vector<uint16_t> brains = {0x477f, 0x4780, 0xc780, 0x7f7f, 0x7f80, 0xffc0};
  tally = {};
  Convert(6, Element::kBFloat16, brains.data(), Element::kHalf, halves.data(), NanRule::kKeep,
          &tally);
  EXPECT_EQ(tally.overflowed, 3);
  Convert(6, Element::kBFloat16, brains.data(), Element::kHalf, halves.data(), NanRule::kToInfinity,
          &tally);
  EXPECT_EQ(tally.overflowed, 7);
  const std::vector<int64_t> integers = {-1, int64_t{0x7f800000}};
  tally = {};
  Convert(2, Element::kInt64, integers.data(), Element::kHalf, halves.data(), NanRule::kKeep,
          &tally);
  Convert(2, Element::kHalf, halves.data(), Element::kInt64, floats.data(), NanRule::kKeep, &tally);
  EXPECT_EQ(tally.overflowed + tally.not_finite, 0);
}

TEST(Convert, CountsInEveryRow) {
  const Extents extents = {2, 1, 3, 5, 7};
  std::vector<float> floats(Count(extents), 1e6f);
  const Layout surface{Element::kHalf, {1024, 1024, 320, 64, 2}};
  std::vector<Half> halves(1024);
  Tally tally;
  ConvertStrided(extents, floats.data(), DenseLayout(Element::kFloat, extents), halves.data(),
                 surface, NanRule::kKeep, &tally);
  EXPECT_EQ(tally.overflowed, 210);
  ConvertStrided(extents, halves.data(), surface, floats.data(),
                 DenseLayout(Element::kFloat, extents), NanRule::kKeep, &tally);
  EXPECT_EQ(tally.not_finite, 210);
}

}  // namespace
}  // namespace anemone::math
