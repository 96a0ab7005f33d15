#include "math/elementwise/unary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float Apply(const UnaryKey& key, float x) { return ToFloat((*TableFor(key))(ToHalf(x))); }

TEST(Unary, TableIsTheRoundedFunctionForEveryValue) {
  const auto sigmoid = TableFor({Unary::kSigmoid});
  for (int bits = 0; bits < 65536; ++bits) {
    const Half x{static_cast<uint16_t>(bits)};
    const Half want = ToHalf(1.0 / (1.0 + std::exp(-ToDouble(x))));
    if (IsNan(want)) {
      ASSERT_TRUE(IsNan((*sigmoid)(x)));
    } else {
      ASSERT_EQ((*sigmoid)(x), want) << bits;
    }
  }
}

TEST(Unary, ClampLimitsEveryValue) {
  std::vector<Half> x(65536), y(65536);
  for (size_t bits = 0; bits < x.size(); ++bits) x[bits].bits = static_cast<uint16_t>(bits);
  constexpr float kLimits[][2] = {{0.0f, kInfinity},      {0.0f, 6.0f}, {-0.0f, 1.0f},
                                  {-1.0f, 0.0f},          {0.1f, 0.7f}, {2.0f, -2.0f},
                                  {-kInfinity, 2.0f},     {0.5f, 0.5f}, {-1.0f, kInfinity},
                                  {-0.0f, 0.0f},          {3.0f, 7.0f}, {-7.0f, -3.0f},
                                  {-kInfinity, kInfinity}};
  ForEachSimdTarget([&] {
    for (const auto& [lo, hi] : kLimits) {
      Clamp(x, lo, hi, absl::MakeSpan(y));
      for (size_t i = 0; i < x.size(); ++i) {
        const float value = ToFloat(x[i]), raised = value <= lo ? lo + 0.0f : value;
        const Half want = ToHalf(raised > hi ? hi + 0.0f : raised);  // a limit of -0 counts as +0
        if (IsNan(x[i])) {
          ASSERT_TRUE(IsNan(y[i]));
        } else {
          ASSERT_EQ(y[i], want) << i << " to " << lo << " and " << hi;
        }
      }
    }
  });
}

TEST(Unary, KnownValues) {
  EXPECT_EQ(Apply({Unary::kGelu}, 1.0f), RoundToHalf(0.841344746f));
  EXPECT_EQ(Apply({Unary::kGeluTanh}, 1.0f), RoundToHalf(0.841191991f));
  EXPECT_EQ(Apply({Unary::kSilu}, 1.0f), RoundToHalf(0.731058579f));
  EXPECT_EQ(Apply({Unary::kSwish, 2.0f}, 1.0f), RoundToHalf(0.880797078f));
  EXPECT_EQ(Apply({Unary::kMish}, 1.0f), RoundToHalf(0.865098388f));
  EXPECT_EQ(Apply({Unary::kSoftplus}, 20.0f), 20.0f);
  EXPECT_EQ(Apply({Unary::kElu, 0.5f}, -1.0f), RoundToHalf(-0.316060279f));
  EXPECT_EQ(Apply({Unary::kCelu, 2.0f}, -1.0f), RoundToHalf(-0.786938681f));
  EXPECT_EQ(Apply({Unary::kSelu, 1.5f, 2.0f}, -1.0f), RoundToHalf(-1.89636168f));
  EXPECT_EQ(Apply({Unary::kHardSigmoid, 0.2f, 0.5f}, 1.0f), RoundToHalf(0.7f));
  EXPECT_EQ(Apply({Unary::kHardSwish}, 1.0f), RoundToHalf(0.666666667f));
  EXPECT_EQ(Apply({Unary::kLeakyRelu, 0.25f}, -2.0f), -0.5f);
  EXPECT_EQ(Apply({Unary::kThresholdedRelu, 1.0f}, 1.0f), 0.0f);
  EXPECT_EQ(Apply({Unary::kShrink, 0.5f, 0.25f}, -1.0f), -0.75f);
  EXPECT_EQ(Apply({Unary::kShrink, 0.5f, 0.25f}, 0.5f), 0.0f);
  EXPECT_EQ(Apply({Unary::kRoundHalfEven}, 2.5f), 2.0f);
  EXPECT_EQ(Apply({Unary::kRoundHalfEven}, -3.5f), -4.0f);
  EXPECT_EQ(Apply({Unary::kRoundHalfEven}, 1.25f), 1.0f);
  EXPECT_EQ(Apply({Unary::kRoundHalfAway}, 2.5f), 3.0f);
  EXPECT_EQ(Apply({Unary::kSign}, -0.1f), -1.0f);
  EXPECT_EQ(Apply({Unary::kNot}, 0.0f), 1.0f);
}

TEST(Unary, EdgesOfTheRange) {
  for (Unary gated :
       {Unary::kGelu, Unary::kGeluTanh, Unary::kSilu, Unary::kMish, Unary::kHardSwish}) {
    EXPECT_EQ(Apply({gated}, -kInfinity), 0.0f) << static_cast<int>(gated);
    EXPECT_EQ(Apply({gated}, kInfinity), kInfinity) << static_cast<int>(gated);
  }
  EXPECT_EQ(Apply({Unary::kRsqrt}, -0.0f), kInfinity);
  EXPECT_EQ(Apply({Unary::kReciprocal}, -0.0f), kInfinity);
  EXPECT_EQ(Apply({Unary::kExp}, 12.0f), kInfinity);
  EXPECT_EQ(Apply({Unary::kLog}, 0.0f), -kInfinity);
  EXPECT_EQ(Apply({Unary::kSoftsign}, -kInfinity), -1.0f);
  EXPECT_EQ(Apply({Unary::kRoundHalfEven}, -kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(Apply({Unary::kSqrt}, -1.0f)));
  EXPECT_TRUE(std::isnan(Apply({Unary::kRelu}, std::nanf(""))));
  EXPECT_TRUE(std::isnan(Apply({Unary::kSign}, std::nanf(""))));
  EXPECT_EQ(Apply({Unary::kIsNan}, std::nanf("")), 1.0f);
  EXPECT_EQ(Apply({Unary::kIsInf}, -kInfinity), 1.0f);
}

TEST(Unary, TablesAreSharedAndKeptUntilThereAreMany) {
  const std::weak_ptr<const UnaryTable> first = TableFor({Unary::kElu, 0.5f});
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(TableFor({Unary::kElu, 0.5f}), first.lock());
  EXPECT_NE(TableFor({Unary::kElu, 0.25f}), first.lock());
  const auto held = TableFor({Unary::kElu, 0.75f});
  for (int i = 1; i <= 100; ++i) TableFor({Unary::kElu, static_cast<float>(i)});
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(TableFor({Unary::kElu, 0.75f}), held);
}

// Checks that computed(x) differs from the table by at most one step for every Half. Below -2.5 it
// may differ by `tail` if that is more.
void ExpectNearTable(Unary function, float tail,
                     void (*computed)(absl::Span<const Half>, absl::Span<Half>)) {
  const auto table = TableFor({function});
  std::vector<Half> x(65536), y(65536);
  for (uint32_t i = 0; i < 65536; ++i) x[i].bits = static_cast<uint16_t>(i);
  ForEachSimdTarget([&] {
    computed(x, absl::MakeSpan(y));
    for (size_t i = 0; i < x.size(); ++i) {
      const float want = ToFloat((*table)(x[i])), have = ToFloat(y[i]), at = ToFloat(x[i]);
      if (std::isnan(want) || std::isinf(want)) {
        ASSERT_TRUE(std::isnan(want) ? std::isnan(have) : have == want) << at;
        continue;
      }
      const float step = std::max(std::fabs(want) * 0x1p-10f, at < -2.5f ? tail : 0x1p-24f);
      ASSERT_LE(std::fabs(have - want), step) << at;
    }
  });
}

TEST(Unary, GeluIsItsTableButForTheTail) { ExpectNearTable(Unary::kGelu, 4.8e-7f, Gelu); }

TEST(Unary, SigmoidAndSiluAreTheirTables) {
  ExpectNearTable(Unary::kSigmoid, 0x1p-24f, Sigmoid);
  ExpectNearTable(Unary::kSilu, 0x1p-24f, Silu);
}

TEST(Unary, AffineRoundsTheProductAndTheSum) {
  std::vector<Half> x(0x7c00 * 2), y(x.size());  // every finite value
  for (size_t i = 0; i < x.size(); ++i) {
    x[i].bits = static_cast<uint16_t>(i < 0x7c00 ? i : i + 0x400);
  }
  ForEachSimdTarget([&] {
    for (float scale : {0.1875f, 0.1f, -1.7f, 0x1p-24f, 1e-30f, 0.0f}) {
      for (float bias : {0.0f, -0.3f, 1000.1f}) {
        Affine(x, scale, bias, absl::MakeSpan(y));
        for (size_t i = 0; i < x.size(); ++i) {
          const volatile float product = ToFloat(x[i]) * scale;  // prevents a fused multiply-add
          ASSERT_EQ(y[i].bits, ToHalf(product + bias).bits)
              << ToFloat(x[i]) << " * " << scale << " + " << bias;
        }
      }
    }
  });
}

TEST(Unary, ArraysAtEdgeSizesOnEveryTarget) {
  const UnaryTable table([](double x) { return x * 0.5; });
  ForEachSimdTarget([&] {
    for (Contents contents : {Contents::kNormal, Contents::kSpecial}) {
      for (int64_t size : EdgeSizes()) {
        const std::vector<Half> x = Numbers(size, 1, contents);
        std::vector<Half> y(size + 1, Half{0x1234}), want(size);
        const auto check = [&](auto&& run, auto&& scalar) {
          run(absl::MakeSpan(y).subspan(0, size));
          for (int64_t i = 0; i < size; ++i) want[i] = ToHalf(scalar(ToFloat(x[i])));
          ExpectSame({y.begin(), y.end() - 1}, want);
          ASSERT_EQ(y.back().bits, 0x1234);
        };
        check([&](absl::Span<Half> out) { ApplyTable(table, x, out); },
              [](float v) { return v * 0.5f; });
        check([&](absl::Span<Half> out) { Clamp(x, -0.25f, 0.5f, out); },
              [](float v) { return v < -0.25f ? -0.25f
                                   : v > 0.5f ? 0.5f
                                              : v; });
        check([&](absl::Span<Half> out) { Relu(x, out); },
              [](float v) { return v < 0 ? 0.0f : v; });
        check([&](absl::Span<Half> out) { LeakyRelu(x, 0.125f, out); },
              [](float v) { return v < 0 ? 0.125f * v : v; });
        check([&](absl::Span<Half> out) { Abs(x, out); }, [](float v) { return std::fabs(v); });
        check([&](absl::Span<Half> out) { Neg(x, out); }, [](float v) { return -v; });
        check([&](absl::Span<Half> out) { Affine(x, 3.0f, -0.5f, out); },
              [](float v) { return static_cast<float>(v * 3.0f) - 0.5f; });
      }
    }
  });
}

}  // namespace
}  // namespace anemone::math
