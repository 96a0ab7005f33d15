#include "base/float_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace anemone {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Numbers at an address that is not aligned.
class Misaligned {
 public:
  explicit Misaligned(const std::vector<float>& numbers) : bytes_(numbers.size() * 4 + 1) {
    std::memcpy(bytes_.data() + 1, numbers.data(), numbers.size() * 4);
  }
  const std::byte* data() const { return bytes_.data() + 1; }

 private:
  std::vector<std::byte> bytes_;
};

std::vector<float> Numbers(int count, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = std::exp(normal(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
  return numbers;
}

TEST(FloatScan, FindsLimitsAndNumbersThatAreNotFinite) {
  for (int count = 0; count < 20; ++count) {
    std::vector<float> numbers = Numbers(count, count);
    const FloatLimits limits = LimitsOfFloats(Misaligned(numbers).data(), count);
    EXPECT_FALSE(limits.has_nan);
    if (count == 0) {
      EXPECT_GT(limits.low, limits.high);
      continue;
    }
    EXPECT_EQ(limits.low, *std::min_element(numbers.begin(), numbers.end()));
    EXPECT_EQ(limits.high, *std::max_element(numbers.begin(), numbers.end()));
    for (int at = 0; at < count; ++at) {
      for (float odd : {kInfinity, -kInfinity, kNan}) {
        std::vector<float> changed = numbers;
        changed[at] = odd;
        const FloatLimits found = LimitsOfFloats(Misaligned(changed).data(), count);
        EXPECT_EQ(found.has_nan, std::isnan(odd)) << at << " of " << count;
        EXPECT_EQ(found.high == kInfinity, odd == kInfinity);
        EXPECT_EQ(found.low == -kInfinity, odd == -kInfinity);
      }
    }
  }
}

TEST(FloatScan, ScalesWithOneRounding) {
  for (int count = 0; count < 20; ++count) {
    const std::vector<float> numbers = Numbers(count, count);
    std::vector<float> to(count + 1, 7.0f);
    ScaleFloats(Misaligned(numbers).data(), count, 1.0 / 3, to.data());
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(to[i], static_cast<float>(static_cast<double>(numbers[i]) * (1.0 / 3)));
    }
    EXPECT_EQ(to[count], 7.0f);
  }
}

TEST(FloatScan, CountsWhatLeavesAnInterval) {
  for (int count = 0; count < 20; ++count) {
    const std::vector<float> before = Numbers(count, count), after = Numbers(count, count + 100);
    FloatsLost want;
    for (int i = 0; i < count; ++i) {
      const float was = std::fabs(before[i]), now = std::fabs(after[i]);
      want.below += was >= 0.5f && now < 0.5f ? 1 : 0;
      want.above += was <= 4.0f && now > 4.0f ? 1 : 0;
    }
    const FloatsLost got =
        CountLost(Misaligned(before).data(), Misaligned(after).data(), count, 0.5f, 4.0f);
    EXPECT_EQ(got.below, want.below) << count;
    EXPECT_EQ(got.above, want.above) << count;
  }
}

TEST(FloatScan, FindsLimitsOfHalves) {
  // 1.5, -2, 65504, infinity, -infinity, NaN, -NaN, the smallest, -0
  const std::vector<uint16_t> odd = {0x3e00, 0xc000, 0x7bff, 0x7c00, 0xfc00,
                                     0x7c01, 0xfe00, 1,      0x8000};
  const std::vector<float> numbers = {1.5f, -2,   65504,    kInfinity, -kInfinity,
                                      kNan, kNan, 0x1p-24f, -0.0f};
  for (int count : {1, 7, 8, 9, 24}) {
    for (int at = 0; at < count; ++at) {
      for (size_t k = 0; k < odd.size(); ++k) {
        std::vector<uint16_t> halves(count, 0x3c00);  // 1
        halves[at] = odd[k];
        std::vector<std::byte> bytes(count * 2 + 1);
        std::memcpy(bytes.data() + 1, halves.data(), count * 2);
        const FloatLimits found = LimitsOfHalves(bytes.data() + 1, count);
        const bool is_nan = std::isnan(numbers[k]), alone = count == 1;
        EXPECT_EQ(found.has_nan, is_nan);
        const float here = is_nan ? 1 : numbers[k];
        if (is_nan && alone) continue;
        EXPECT_EQ(found.low, alone ? here : std::min(here, 1.0f)) << count << " " << at << " " << k;
        EXPECT_EQ(found.high, alone ? here : std::max(here, 1.0f))
            << count << " " << at << " " << k;
      }
    }
  }
  EXPECT_GT(LimitsOfHalves(nullptr, 0).low, LimitsOfHalves(nullptr, 0).high);
}

}  // namespace
}  // namespace anemone
