// Tests 3x3, 1x3 and 1x5 convolutions that are large enough for math/conv/winograd.cc, and those of
// dilated.cc, which use it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "math/conv/conv.h"
#include "math/conv/conv_state.h"
#include "tests/math/conv/conv_testing.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

struct WinogradCase {
  std::string name;
  ConvShape shape;
};

void PrintTo(const WinogradCase& c, std::ostream* out) { *out << c.name; }

Window Pads(int64_t top, int64_t left, int64_t bottom, int64_t right) {
  return {3, 3, 1, 1, 1, 1, top, left, bottom, right};
}

Window RowPads(int64_t taps, int64_t left, int64_t right) {
  return {1, taps, 1, 1, 1, 1, 0, left, 0, right};
}

const WinogradCase kWinogradCases[] = {
    {"square", {1, 32, 16, 16, 32, 1, Pads(1, 1, 1, 1)}},
    {"batch", {3, 33, 17, 15, 51, 1, Pads(1, 1, 1, 1)}},
    {"no_pads", {1, 64, 14, 18, 40, 1, Pads(0, 0, 0, 0)}},
    {"uneven_pads", {1, 40, 19, 13, 33, 1, Pads(2, 0, 1, 5)}},
    {"wide", {1, 32, 6, 300, 32, 1, Pads(1, 1, 1, 1)}},
    {"tall", {1, 32, 300, 7, 32, 1, Pads(1, 1, 1, 1)}},
    {"seven_by_seven", {2, 200, 7, 7, 150, 1, Pads(1, 1, 1, 1)}},
    {"one_of_the_last_tiles", {2, 40, 13, 13, 60, 1, Pads(1, 1, 1, 1)}},
    {"two_of_the_last_tiles", {1, 70, 16, 16, 64, 1, Pads(0, 0, 0, 0)}},
    {"one_row_two_columns", {1, 64, 9, 9, 50, 1, Pads(2, 1, 0, 2)}},
    {"two_rows_one_column", {1, 32, 19, 44, 32, 1, Pads(0, 2, 1, 1)}},
    {"few_columns_only", {1, 48, 16, 14, 32, 1, Pads(1, 1, 1, 1)}},
    {"groups", {1, 96, 20, 20, 128, 2, Pads(1, 1, 1, 1)}},
    {"one_part_of_a_block", {1, 64, 24, 20, 16, 1, Pads(1, 1, 1, 1)}},
    {"five_parts", {1, 40, 7, 7, 80, 1, Pads(1, 1, 1, 1)}},
    {"eleven_parts", {1, 36, 14, 14, 176, 1, Pads(1, 1, 1, 1)}},
    {"deep", {1, 300, 8, 8, 64, 1, Pads(1, 1, 1, 1)}},
    {"seven_tiles_across", {1, 64, 28, 27, 48, 1, Pads(1, 1, 1, 1)}},
    {"several_runs", {1, 32, 45, 61, 32, 1, Pads(1, 1, 1, 1)}},
    {"long_rows", {1, 32, 11, 270, 16, 1, Pads(0, 1, 1, 0)}},
    {"three_taps", {1, 64, 1, 100, 64, 1, RowPads(3, 1, 1)}},
    {"three_taps_in_rows", {2, 90, 9, 37, 72, 1, RowPads(3, 0, 2)}},
    {"three_taps_in_groups", {1, 96, 3, 64, 96, 2, RowPads(3, 1, 1)}},
    {"three_taps_of_long_rows", {1, 32, 1, 1700, 32, 1, RowPads(3, 2, 0)}},
    {"three_taps_in_a_column", {1, 64, 90, 1, 48, 1, {3, 1, 1, 1, 1, 1, 1, 0, 1, 0}}},
    {"three_distant_taps", {1, 64, 1, 1000, 64, 1, {1, 3, 1, 1, 1, 4, 0, 0, 0, 0}}},
    {"three_distant_taps_with_pads", {2, 40, 1, 503, 48, 1, {1, 3, 1, 1, 1, 3, 0, 5, 0, 2}}},
    {"three_distant_taps_in_groups", {1, 96, 1, 611, 96, 2, {1, 3, 1, 1, 1, 16, 0, 16, 0, 16}}},
    {"three_distant_taps_in_a_column", {1, 64, 400, 1, 48, 1, {3, 1, 1, 1, 2, 1, 2, 0, 2, 0}}},
    {"five_distant_taps", {1, 64, 1, 900, 64, 1, {1, 5, 1, 1, 1, 2, 0, 4, 0, 4}}},
    {"distant_taps_of_planes", {2, 40, 30, 48, 36, 1, {3, 3, 1, 1, 2, 3, 2, 3, 2, 3}}},
    {"distant_rows_of_planes", {1, 64, 33, 21, 48, 1, {3, 3, 1, 1, 2, 1, 0, 1, 0, 1}}},
    {"distant_columns_of_planes", {1, 32, 19, 61, 64, 1, {3, 3, 1, 1, 1, 4, 1, 1, 1, 6}}},
    {"distant_taps_of_planes_in_groups", {1, 96, 40, 40, 96, 2, {3, 3, 1, 1, 4, 4, 4, 4, 4, 4}}},
    {"distant_taps_of_many_rows", {1, 48, 24, 72, 40, 1, {1, 3, 1, 1, 2, 3, 0, 3, 0, 3}}},
    {"five_taps", {1, 64, 1, 100, 64, 1, RowPads(5, 2, 2)}},
    {"five_taps_in_rows", {2, 90, 9, 37, 72, 1, RowPads(5, 4, 0)}},
    {"five_taps_without_pads", {1, 128, 1, 93, 80, 1, RowPads(5, 0, 0)}},
    {"five_taps_of_long_rows", {1, 64, 1, 901, 64, 1, RowPads(5, 0, 3)}},
    {"five_taps_in_a_column", {1, 64, 83, 1, 48, 1, {5, 1, 1, 1, 1, 1, 2, 0, 2, 0}}},
};

// For sums of hundreds of products below 1, with an error of 1e-6 of the sum of their magnitudes.
constexpr double kSlack = 3e-4;

class WinogradTest : public testing::TestWithParam<WinogradCase> {};

TEST_P(WinogradTest, IsCloseToThePlainSumOnEveryTarget) {
  const Window& w = GetParam().shape.window;
  const bool is_dilated = w.dilation_h * w.dilation_w > 1;
  ExpectCloseToPlainConv(GetParam().shape, is_dilated ? ConvKind::kDilated : ConvKind::kWinograd,
                         kSlack);
}

// Rows of tiles with large inputs are not transformed: some rows, and all of them. The sums of the
// large products are rounded to about 1e-7 of 1e5.
TEST_P(WinogradTest, LargeInputsAreSummedDirectly) {
  const ConvShape& s = GetParam().shape;
  const std::vector<Half> w = ConvWeightsOf(s);
  const std::vector<float> bias = Floats(s.out_channels, 3);
  for (const size_t step : {size_t{37}, size_t{2000}}) {
    std::vector<Half> x = ConvInput(s);
    for (size_t i = 5; i < x.size(); i += step) x[i] = ToHalf(i % 2 == 0 ? 17000.0f : -20000.0f);
    const std::vector<double> want = PlainConv(s, x, w, bias);
    ForEachSimdTarget([&] {
      std::vector<Half> y(want.size());
      Conv(PackConv(s, w, bias), x, absl::MakeSpan(y));
      ExpectClose(y, want, 0.05);
    });
  }
}

TEST_P(WinogradTest, ThreadsDoNotShow) {
  const ConvShape& s = GetParam().shape;
  std::vector<Half> x = ConvInput(s);
  const PackedConv packed = PackConv(s, ConvWeightsOf(s), {});
  for (const float first : {0.5f, 60000.0f}) {  // 60000 is too large for the transform
    x[0] = ToHalf(first);
    ExpectThreadsDoNotShow(OutputsOf(s), [&](absl::Span<Half> y) { Conv(packed, x, y); });
  }
}

// With AddressSanitizer nothing is optimized, and all of them would take minutes.
std::vector<WinogradCase> CasesHere() {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  constexpr size_t kOneIn = 4;
#else
  constexpr size_t kOneIn = 1;
#endif
  std::vector<WinogradCase> cases;
  for (size_t i = kOneIn - 1; i < std::size(kWinogradCases); i += kOneIn) {
    cases.push_back(kWinogradCases[i]);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTest, testing::ValuesIn(CasesHere()),
                         [](const auto& info) { return info.param.name; });

TEST(Winograd, ClampsWhatItRounds) {
  const ConvShape s{1, 32, 15, 17, 32, 1, Pads(1, 1, 1, 1)};
  const PackedConv packed = PackConv(s, ConvWeightsOf(s), {});
  ASSERT_EQ(packed.state().weights->kind, ConvKind::kWinograd);
  ForEachSimdTarget([&] {
    for (Contents contents : {Contents::kNormal, Contents::kSubnormal, Contents::kSpecial}) {
      const std::vector<Half> x = Numbers(s.batch * s.in_channels * s.in_h * s.in_w, 1, contents);
      std::vector<Half> y(OutputsOf(s));
      ExpectClamped(
          y, [&](const Epilogue& epilogue) { Conv(packed, x, absl::MakeSpan(y), epilogue); });
    }
  });
}

// An infinity or a very large number must not change results that do not depend on it.
TEST(Winograd, LargeNumbersDoNotSpread) {
  const ConvShape s{1, 32, 16, 16, 32, 1, Pads(1, 1, 1, 1)};
  const std::vector<Half> w = ConvWeightsOf(s);
  const std::vector<float> bias = Floats(32, 3);
  for (const float large : {HUGE_VALF, -60000.0f}) {
    std::vector<Half> x = Numbers(32 * 256, 1);
    // Every row of tiles reads one of them.
    for (int64_t at : {0, 100, 170, 32 * 256 - 1}) x[at] = ToHalf(large);
    const std::vector<double> want = PlainConv(s, x, w, bias);
    ForEachSimdTarget([&] {
      std::vector<Half> y(want.size());
      Conv(PackConv(s, w, bias), x, absl::MakeSpan(y));
      ExpectClose(y, want, 1e-6);
    });
  }
}

// Transforming the weights of a short row costs as much as the products that it saves.
TEST(Winograd, IsNotForShortRows) {
  const auto kind = [](int64_t width) {
    const ConvShape s{1, 256, 1, width, 192, 1, {.kernel_w = 5, .pad_left = 2, .pad_right = 2}};
    return PackConv(s, ConvWeightsOf(s), {}).state().weights->kind;
  };
  EXPECT_NE(kind(12), ConvKind::kWinograd);
  EXPECT_EQ(kind(64), ConvKind::kWinograd);
}

TEST(Winograd, IsNotForLargeWeights) {
  const ConvShape s{1, 32, 16, 16, 32, 1, Pads(1, 1, 1, 1)};
  std::vector<Half> w = ConvWeightsOf(s);
  w[77] = ToHalf(HUGE_VALF);
  EXPECT_EQ(PackConv(s, w, {}).state().weights->kind, ConvKind::kPanels);
}

}  // namespace
}  // namespace anemone::math
