// Tests 1x1 convolutions that are large enough for math/gemm/strassen_conv.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "math/conv/conv.h"
#include "math/conv/conv_state.h"
#include "tests/math/conv/conv_testing.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

struct StrassenCase {
  std::string name;
  ConvShape shape;  // batch, in_channels, in_h, in_w, out_channels, groups
};

void PrintTo(const StrassenCase& c, std::ostream* out) { *out << c.name; }

const StrassenCase kStrassenCases[] = {
    {"whole_blocks", {1, 128, 16, 12, 128, 1, {}}}, {"ends", {1, 136, 13, 13, 147, 1, {}}},
    {"narrow_pair", {1, 120, 1, 185, 96, 1, {}}},   {"left_over", {1, 128, 10, 25, 100, 1, {}}},
    {"batch", {3, 192, 8, 12, 64, 1, {}}},          {"groups", {2, 256, 10, 10, 288, 2, {}}},
    {"passes", {1, 520, 8, 12, 64, 1, {}}},         {"few_left_over", {1, 520, 14, 14, 112, 1, {}}},
};

// For sums of up to a thousand products below 1. Without fused multiply-adds the sums of quarters
// round too.
constexpr double kSlack = 1e-4;

class StrassenTest : public testing::TestWithParam<StrassenCase> {};

TEST_P(StrassenTest, IsCloseToThePlainSumOnEveryTarget) {
  ExpectCloseToPlainConv(GetParam().shape, ConvKind::kStrassen, kSlack);
}

TEST_P(StrassenTest, NeitherThreadsNorThePlaceInTheBatchShow) {
  ConvShape s = GetParam().shape;
  const std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
  const PackedConv packed = PackConv(s, w, {});
  const std::vector<Half> one =
      ExpectThreadsDoNotShow(OutputsOf(s), [&](absl::Span<Half> y) { Conv(packed, x, y); });
  const int64_t images = s.batch;
  s.batch = 1;
  const PackedConv alone = PackConv(s, w, {});
  const int64_t in = x.size() / images, out = one.size() / images;
  for (int64_t image = 0; image < images; ++image) {
    std::vector<Half> y(out);
    Conv(alone, absl::MakeSpan(x).subspan(image * in, in), absl::MakeSpan(y));
    ExpectSame(y, {one.begin() + image * out, one.begin() + (image + 1) * out});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, StrassenTest, testing::ValuesIn(kStrassenCases),
                         [](const auto& info) { return info.param.name; });

TEST(Strassen, ClampsWhatItRounds) {
  const ConvShape s{1, 128, 8, 12, 128, 1, {}};
  const PackedConv packed = PackConv(s, ConvWeightsOf(s), {});
  ASSERT_EQ(packed.state().weights->kind, ConvKind::kStrassen);
  ForEachSimdTarget([&] {
    for (Contents contents : {Contents::kNormal, Contents::kSubnormal, Contents::kSpecial}) {
      const std::vector<Half> x = Numbers(s.in_channels * s.in_h * s.in_w, 1, contents);
      std::vector<Half> y(s.out_channels * s.out_h() * s.out_w());
      ExpectClamped(
          y, [&](const Epilogue& epilogue) { Conv(packed, x, absl::MakeSpan(y), epilogue); });
    }
  });
}

// A position of the input or a channel of the weights that is much smaller than its neighbors is
// computed as exactly as if it were alone, and zeros give the bias. Values that are not finite or
// very large do not change other results.
TEST(Strassen, LinesThatDifferStayAlone) {
  const ConvShape s{1, 128, 8, 12, 128, 1, {}};
  constexpr int64_t kPlane = 96, kPosition = 50, kChannel = 40;
  const std::vector<float> bias(128, 0.25f);
  for (const float factor : {0.0f, 0x1p-11f, 3e4f, HUGE_VALF}) {
    std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
    for (int64_t k = 0; k < 128; ++k) {
      Half& input = x[k * kPlane + kPosition];
      Half& weight = w[kChannel * 128 + k];
      input = ToHalf(ToFloat(input) * factor);
      weight = ToHalf(ToFloat(weight) * factor);
    }
    const std::vector<double> want = PlainConv(s, x, w, bias);
    ForEachSimdTarget([&] {
      std::vector<Half> y(want.size());
      Conv(PackConv(s, w, bias), x, absl::MakeSpan(y));
      ExpectClose(y, want, kSlack);
      for (int64_t i = 0; i < 128 * kPlane && factor < 1; ++i) {
        if (i % kPlane != kPosition && i / kPlane != kChannel) continue;
        ExpectClose({y[i]}, {want[i]}, 1e-8);
      }
    });
  }
}

}  // namespace
}  // namespace anemone::math
