#include "math/conv/conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "math/conv/conv_cut.h"
#include "math/conv/conv_state.h"
#include "tests/math/conv/conv_testing.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// The definition of conv.h: fp32 sums in the order of channel, kernel row, kernel column.
std::vector<Half> Reference(const ConvShape& s, const std::vector<Half>& x,
                            const std::vector<Half>& w, const std::vector<float>& bias,
                            bool relu = false) {
  const Window& win = s.window;
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  std::vector<Half> y(s.batch * s.out_channels * s.out_h() * s.out_w());
  size_t at = 0;
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t o = 0; o < s.out_channels; ++o) {
      for (int64_t i = 0; i < s.out_h(); ++i) {
        for (int64_t j = 0; j < s.out_w(); ++j) {
          float sum = 0;
          for (int64_t c = 0; c < group_in; ++c) {
            for (int64_t kh = 0; kh < win.kernel_h; ++kh) {
              for (int64_t kw = 0; kw < win.kernel_w; ++kw) {
                const int64_t row = i * win.stride_h + kh * win.dilation_h - win.pad_top;
                const int64_t column = j * win.stride_w + kw * win.dilation_w - win.pad_left;
                if (row < 0 || row >= s.in_h || column < 0 || column >= s.in_w) continue;
                const int64_t channel = n * s.in_channels + o / group_out * group_in + c;
                sum += ToFloat(x[(channel * s.in_h + row) * s.in_w + column]) *
                       ToFloat(w[((o * group_in + c) * win.kernel_h + kh) * win.kernel_w + kw]);
              }
            }
          }
          sum += bias[o];
          const Half rounded = ToHalf(sum);
          y[at++] = relu && ToFloat(rounded) < 0 ? kHalfZero : rounded;
        }
      }
    }
  }
  return y;
}

struct ConvCase {
  std::string name;
  ConvShape shape;
};

void PrintTo(const ConvCase& c, std::ostream* out) { *out << c.name; }

const ConvCase kConvCases[] = {
    {"pointwise", {1, 19, 7, 9, 13, 1, {}}},
    {"pointwise_deep", {2, 800, 5, 6, 20, 1, {}}},
    {"pointwise_of_64_positions", {1, 20, 4, 16, 140, 1, {}}},
    {"pointwise_with_few_columns_at_the_end", {1, 31, 6, 33, 24, 1, {}}},
    {"pointwise_stride2_with_few_columns_at_the_end", {1, 36, 27, 28, 40, 1, Square(1, 2, 0)}},
    {"pointwise_in_blocks_of_rows", {1, 1021, 9, 20, 70, 1, {}}},
    {"pointwise_in_parts_for_the_epilogue", {1, 5, 33, 67, 9, 1, {}}},
    {"pointwise_stride2", {1, 8, 9, 9, 12, 1, Square(1, 2, 0)}},
    {"pointwise_padded", {1, 3, 4, 4, 5, 1, Square(1, 1, 1)}},
    {"three", {2, 5, 11, 13, 9, 1, Square(3, 1, 1)}},
    {"three_no_pad", {1, 5, 11, 13, 9, 1, Square(3, 1, 0)}},
    {"three_stride2", {1, 6, 15, 14, 17, 1, Square(3, 2, 1)}},
    {"three_stride3", {1, 6, 15, 16, 17, 1, Square(3, 3, 1)}},
    {"three_dilated", {1, 6, 15, 14, 8, 1, Square(3, 1, 2, 2)}},
    {"three_dilated_stride2", {1, 6, 17, 14, 8, 1, Square(3, 2, 3, 3)}},
    {"three_deep", {1, 130, 6, 7, 10, 1, Square(3, 1, 1)}},
    {"five", {1, 4, 12, 12, 6, 1, Square(5, 1, 2)}},
    {"seven_stride2_image", {1, 3, 40, 38, 16, 1, Square(7, 2, 3)}},
    {"even_kernel", {1, 4, 10, 9, 6, 1, {2, 4, 1, 1, 1, 1, 0, 1, 1, 2}}},
    {"uneven", {1, 4, 10, 9, 6, 1, {3, 2, 2, 1, 1, 3, 2, 0, 1, 1}}},
    {"pads_beyond_kernel", {1, 3, 3, 3, 4, 1, Square(3, 1, 4)}},
    {"wide_rows", {1, 3, 5, 300, 6, 1, Square(3, 1, 1)}},
    {"wide_rows_stride2", {1, 3, 5, 601, 6, 1, Square(3, 2, 1)}},
    // Channels that are staged in parts, and rows that end within the last vector of a panel.
    {"staged_in_parts", {1, 51, 54, 4, 1, 1, {1, 2, 1, 1, 1, 1, 0, 1, 0, 1}}},
    {"staged_in_parts_stride2", {1, 30, 57, 39, 6, 1, Square(3, 2, 1)}},
    // Rows that are read from the stage in place.
    {"staged_rows", {2, 5, 37, 94, 13, 1, Square(3, 2, 1)}},
    {"staged_rows_grouped", {2, 6, 20, 31, 12, 3, Square(3, 1, 1)}},
    {"padding_above_and_below_dilated", {1, 64, 1, 400, 64, 1, {3, 3, 1, 1, 1, 2, 1, 2, 1, 2}}},
    {"staged_rows_dilated", {1, 4, 20, 32, 9, 1, Square(3, 1, 2, 2)}},
    {"staged_rows_stride3", {1, 2, 60, 290, 7, 1, Square(4, 3, 1)}},
    {"one_row", {2, 7, 1, 250, 9, 1, {1, 5, 1, 2, 1, 1, 0, 2, 0, 2}}},
    {"one_column", {2, 7, 90, 1, 9, 1, {5, 1, 2, 1, 1, 1, 2, 0, 2, 0}}},
    {"grouped", {2, 12, 9, 8, 18, 3, Square(3, 1, 1)}},
    {"grouped_pointwise", {1, 12, 9, 8, 18, 2, {}}},
    {"depthwise", {2, 9, 13, 14, 9, 9, Square(3, 1, 1)}},
    {"depthwise_small", {1, 9, 7, 7, 9, 9, Square(3, 1, 1)}},
    {"depthwise_five_stride2", {1, 5, 21, 35, 5, 5, Square(5, 2, 2)}},
    {"depthwise_wide", {1, 2, 6, 150, 2, 2, Square(3, 1, 1)}},
    {"depthwise_of_two_vectors", {1, 7, 5, 17, 7, 7, Square(3, 1, 1)}},
    {"depthwise_five_stride2_wide", {1, 3, 21, 70, 3, 3, Square(5, 2, 2)}},
    {"depthwise_three_stride2_padded_after", {1, 3, 20, 96, 3, 3, {3, 3, 2, 2, 1, 1, 0, 0, 1, 1}}},
    {"depthwise_dilated", {1, 3, 20, 19, 3, 3, Square(3, 1, 2, 2)}},
    {"depthwise_dilated_wide", {2, 3, 33, 70, 3, 3, Square(3, 1, 4, 4)}},
    {"depthwise_dilated_rows", {1, 3, 29, 40, 3, 3, {5, 5, 1, 1, 3, 1, 6, 2, 6, 2}}},
    {"depthwise_dilated_columns", {1, 3, 9, 75, 3, 3, {3, 3, 1, 1, 1, 5, 1, 5, 1, 5}}},
    {"depthwise_dilated_beyond", {1, 3, 5, 6, 3, 3, Square(3, 1, 12, 12)}},
    {"depthwise_dilated_bands", {1, 2, 260, 300, 2, 2, Square(3, 1, 2, 2)}},
    {"depthwise_seven", {1, 3, 30, 75, 3, 3, Square(7, 1, 3)}},
    {"depthwise_seven_small", {2, 5, 7, 7, 5, 5, Square(7, 1, 3)}},
    {"depthwise_seven_stride2", {1, 3, 29, 60, 3, 3, Square(7, 2, 3)}},
    {"depthwise_five_wide", {1, 3, 16, 130, 3, 3, Square(5, 1, 2)}},
    {"depthwise_whole_plane", {2, 70, 7, 7, 70, 70, Square(7, 1, 0)}},
    {"depthwise_whole_row", {3, 5, 1, 40, 5, 5, {1, 40, 1, 1, 1, 1, 0, 0, 0, 0}}},
    {"depthwise_multiplier", {1, 3, 10, 11, 9, 3, Square(3, 1, 1)}},
    {"depthwise_five_small", {2, 20, 7, 7, 20, 20, Square(5, 1, 2)}},
    {"depthwise_five_to_seven", {1, 20, 14, 14, 20, 20, Square(5, 2, 2)}},
    {"depthwise_three_stride2", {1, 7, 28, 28, 7, 7, Square(3, 2, 1)}},
    {"depthwise_long_steps_down", {1, 6, 12, 40, 6, 6, {5, 5, 2, 1, 1, 1, 2, 2, 2, 2}}},
    {"depthwise_long_steps_right", {1, 6, 13, 17, 6, 6, {3, 3, 1, 2, 1, 1, 0, 2, 1, 0}}},
    {"depthwise_stride3", {1, 6, 13, 17, 6, 6, Square(3, 3, 1)}},
    {"depthwise_pads_beyond_kernel", {1, 3, 3, 3, 3, 3, Square(3, 1, 4)}},
    {"depthwise_one_position", {2, 5, 1, 1, 5, 5, Square(5, 1, 2)}},
    {"depthwise_bands", {1, 2, 260, 300, 2, 2, Square(3, 1, 1)}},
    {"one_channel_in", {1, 1, 10, 11, 20, 1, Square(3, 1, 1)}},
    {"whole_plane", {3, 10, 5, 5, 60, 1, Square(5, 1, 0)}},
    {"seven_by_seven", {2, 50, 7, 7, 150, 1, Square(3, 2, 3)}},
    {"seven_by_seven_pointwise", {1, 400, 7, 7, 330, 1, {}}},
    {"seven_by_seven_stride2", {1, 20, 14, 14, 100, 1, Square(3, 2, 1)}},
    {"pointwise_stride2_to_seven", {1, 40, 14, 14, 100, 1, Square(1, 2, 0)}},
    {"pointwise_stride4", {1, 5, 17, 18, 6, 1, Square(1, 4, 0)}},
    {"pointwise_stride2_padded_after", {1, 6, 9, 10, 8, 1, {1, 1, 2, 2, 1, 1, 0, 0, 2, 3}}},
    {"pointwise_stride3_of_groups", {2, 12, 9, 31, 8, 4, {1, 1, 1, 3, 1, 1, 0, 0, 0, 0}}},
    {"dilated_one_output_row", {1, 5, 25, 40, 6, 1, Square(3, 1, 0, 12)}},
    {"two_stride3", {1, 5, 17, 18, 6, 1, Square(2, 3, 0)}},
    {"two_stride4_dilated2", {1, 5, 17, 38, 6, 1, Square(2, 4, 1, 2)}},
    {"thirteen_columns", {1, 7, 1, 33, 110, 1, {1, 3, 1, 1, 1, 1, 0, 1, 0, 1}}},
    {"few_positions", {2, 10, 3, 4, 60, 1, Square(3, 2, 1)}},
    {"one_position_pointwise", {2, 30, 1, 1, 60, 1, {}}},
    {"few_positions_pointwise", {2, 30, 2, 3, 60, 1, {}}},
    {"few_positions_grouped", {1, 8, 2, 2, 10, 2, Square(3, 1, 1)}},
    {"many_rows", {1, 9, 4, 13, 600, 1, {}}},
    {"large_kernel", {1, 2, 40, 41, 3, 1, Square(31, 1, 15)}},
    {"images", {75, 3, 9, 8, 13, 1, Square(3, 2, 1)}},
    {"images_uneven", {32, 2, 11, 9, 5, 1, {3, 2, 2, 1, 1, 3, 2, 0, 1, 1}}},
};

class ConvTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvTest, EqualsThePlainSumOnEveryTarget) {
  const ConvShape& s = GetParam().shape;
  const std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
  const std::vector<float> bias = Floats(s.out_channels, 3);
  const std::vector<Half> want = Reference(s, x, w, bias);
  const std::vector<Half> want_relu = Reference(s, x, w, bias, /*relu=*/true);
  ForEachSimdTarget([&] {
    const PackedConv packed = PackConv(s, w, bias);
    std::vector<Half> y(want.size());
    Conv(packed, x, absl::MakeSpan(y));
    ExpectSame(y, want);
    WithRelu(y, [&](const Epilogue& relu) { Conv(packed, x, absl::MakeSpan(y), relu); });
    ExpectSame(y, want_relu);
  });
}

TEST_P(ConvTest, ThreadsDoNotShow) {
  const ConvShape& s = GetParam().shape;
  const std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
  const PackedConv packed = PackConv(s, w, {});
  ExpectThreadsDoNotShow(OutputsOf(s), [&](absl::Span<Half> y) { Conv(packed, x, y); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvTest, testing::ValuesIn(kConvCases),
                         [](const auto& info) { return info.param.name; });

// A 1x1 convolution with a band of weights, as in normalizations over channels.
std::vector<Half> BandWeights(int64_t channels) {
  std::vector<Half> weights = Numbers(channels * channels, 2);
  for (int64_t i = 0; i < channels * channels; ++i) {
    if (std::abs(i / channels - i % channels) > 1) weights[i] = kHalfZero;
  }
  return weights;
}

TEST(ConvOfBands, ThreadsDoNotShow) {
  for (const int64_t width : {16, 17, 33, 47, 300, 1000}) {
    const ConvShape s = {1, 32, 1, width, 32, 1, Square(1, 1, 0)};
    const std::vector<Half> x = Numbers(s.in_channels * width, 1), w = BandWeights(s.in_channels);
    const PackedConv packed = PackConv(s, w, {});
    const std::vector<Half> y = ExpectThreadsDoNotShow(
        s.out_channels * width, [&](absl::Span<Half> y) { Conv(packed, x, y); });
    ExpectSame(y, Reference(s, x, w, std::vector<float>(s.out_channels)));
  }
}

TEST(ConvOfInMajorWeights, EqualsThatOfTheirTranspose) {
  const auto of = [](int64_t in, int64_t out, int64_t side) {
    return ConvShape{.in_channels = in, .in_h = side, .in_w = side, .out_channels = out};
  };
  struct Case {
    ConvShape shape;
    ConvKind kind;
  };
  for (const auto& [shape, kind] :
       {Case{of(100, 70, 1), ConvKind::kMatrix}, Case{of(64, 100, 3), ConvKind::kMatrix},
        Case{of(33, 21, 20), ConvKind::kPanels}, Case{of(256, 512, 40), ConvKind::kPanels},
        Case{of(256, 512, 14), ConvKind::kMatrix}, Case{of(256, 256, 14), ConvKind::kPanels},
        Case{of(1, 3, 20), ConvKind::kDepthwise}}) {
    SCOPED_TRACE(testing::Message() << shape.in_channels << " -> " << shape.out_channels);
    const std::vector<Half> x = ConvInput(shape), turned = ConvWeightsOf(shape);
    std::vector<Half> w;
    for (int64_t i = 0; i < static_cast<int64_t>(turned.size()); ++i) {
      w.push_back(turned[i % shape.out_channels * shape.in_channels + i / shape.out_channels]);
    }
    ConvShape in_major = shape;
    in_major.in_major = true;
    const PackedConv got = PackConv(in_major, w, {}), want = PackConv(shape, turned, {});
    EXPECT_EQ(got.state().weights->kind, kind);
    std::vector<Half> y(OutputsOf(shape)), expected(y.size());
    Conv(got, x, absl::MakeSpan(y));
    Conv(want, x, absl::MakeSpan(expected));
    ExpectSame(y, expected);
  }
}

// The number of parts into which two threads divide the positions of an output channel.
int64_t PartsOfPositions(const ConvShape& s, const std::vector<Half>& w) {
  const std::vector<Half> x = Numbers(s.in_channels * s.in_h * s.in_w, 1);
  const PackedConv packed = PackConv(s, w, {});
  std::vector<Half> y(s.out_channels * s.out_h() * s.out_w());
  std::atomic<int64_t> parts = 0;
  const auto finish = [&](Half* first, int64_t, int64_t, int64_t) {
    if (first - y.data() < s.out_h() * s.out_w()) ++parts;
  };
  WithThreads(2, [&] { Conv(packed, x, absl::MakeSpan(y), Epilogue(finish)); });
  return parts;
}

TEST(ConvOfBands, ThreadsGetAsManyPositions) {
  const ConvShape s = {1, 64, 55, 55, 64, 1, Square(1, 1, 0)};
  EXPECT_EQ(PartsOfPositions(s, BandWeights(s.in_channels)) % 2, 0);
}

// The cores would write the same cache lines.
TEST(ConvOfSmallPlanes, ThreadsWriteTheirOwnPlanes) {
  const ConvShape s = {1, 64, 20, 20, 64, 1, Square(3, 1, 1)};
  EXPECT_EQ(PartsOfPositions(s, Numbers(s.out_channels * s.in_channels * 9, 2)), 1);
}

TEST(ConvOfShortRows, ThreadsUnfoldTheirOwnPositions) {
  const ConvShape s = {1, 64, 40, 40, 128, 1, Square(3, 2, 1)};
  EXPECT_EQ(PartsOfPositions(s, Numbers(s.out_channels * s.in_channels * 9, 2)) % 2, 0);
}

TEST(ConvOfSequences, ThreadsShareTheRow) {
  const ConvShape s = {1, 4, 1, 1000, 64, 1, {1, 10, 1, 1, 1, 1, 0, 0, 0, 0}};
  const std::vector<Half> w = Numbers(s.out_channels * s.in_channels * 10, 2);
  EXPECT_EQ(PartsOfPositions(s, w), 2);
  const std::vector<Half> x = Numbers(s.in_channels * s.in_w, 1);
  const PackedConv packed = PackConv(s, w, {});
  const std::vector<Half> y = ExpectThreadsDoNotShow(
      s.out_channels * s.out_w(), [&](absl::Span<Half> y) { Conv(packed, x, y); });
  ExpectSame(y, Reference(s, x, w, std::vector<float>(s.out_channels)));
}

// Unfolding would write each input once for each tap.
TEST(ConvOfSequences, LongRowsAreStagedInParts) {
  const ConvShape s = {1, 16, 1, 4099, 6, 1, {1, 9, 1, 1, 1, 1, 0, 4, 0, 4}};
  const std::vector<Half> w = Numbers(s.out_channels * s.in_channels * 9, 2);
  const PackedConv packed = PackConv(s, w, {});
  EXPECT_TRUE(ReadsStage(packed.state().geometry));
  EXPECT_GT(CutStaged(packed.state().geometry).per_row, 1);
  const std::vector<Half> x = Numbers(s.in_channels * s.in_w, 1);
  const std::vector<Half> y = ExpectThreadsDoNotShow(
      s.out_channels * s.out_w(), [&](absl::Span<Half> y) { Conv(packed, x, y); });
  ExpectSame(y, Reference(s, x, w, std::vector<float>(s.out_channels)));
}

// A part without positions cannot be computed.
TEST(ConvOfSequences, ManyThreadsGetPositionsEach) {
  const ConvShape s = {1, 200, 1, 200, 40, 1, {1, 2, 1, 1, 1, 1, 0, 0, 0, 0}};
  const std::vector<Half> w = ConvWeightsOf(s), x = ConvInput(s);
  const PackedConv packed = PackConv(s, w, {});
  ASSERT_TRUE(ReadsStage(packed.state().geometry));
  std::vector<Half> y(OutputsOf(s));
  WithThreads(64, [&] {
    EXPECT_LE(CutStaged(packed.state().geometry).per_row, 5);
    Conv(packed, x, absl::MakeSpan(y));
  });
  ExpectSame(y, Reference(s, x, w, std::vector<float>(s.out_channels)));
}

// One shape for each algorithm except Winograd's.
TEST(Conv, ClampsWhatItRounds) {
  const ConvShape kShapes[] = {
      {1, 19, 7, 9, 13, 1, {}},
      {1, 700, 5, 6, 20, 1, {}},
      {1, 6, 15, 14, 17, 1, Square(3, 2, 1)},
      {1, 12, 9, 8, 18, 3, Square(3, 1, 1)},
      {1, 9, 13, 14, 9, 9, Square(3, 1, 1)},
      {1, 3, 9, 70, 3, 3, Square(5, 1, 2)},
      {1, 6, 4, 40, 6, 6, {1, 4, 1, 1, 1, 1, 0, 0, 3, 0}},
      {1, 20, 14, 14, 100, 1, Square(3, 2, 1)},
      {2, 30, 2, 3, 60, 1, {}},
  };
  for (const ConvShape& s : kShapes) {
    const int64_t weights =
        s.out_channels * (s.in_channels / s.groups) * s.window.kernel_h * s.window.kernel_w;
    const PackedConv packed = PackConv(s, Numbers(weights, 2), {});
    ForEachSimdTarget([&] {
      for (Contents contents : {Contents::kNormal, Contents::kSubnormal, Contents::kSpecial}) {
        const std::vector<Half> x = Numbers(s.batch * s.in_channels * s.in_h * s.in_w, 1, contents);
        std::vector<Half> y(s.batch * s.out_channels * s.out_h() * s.out_w());
        ExpectClamped(
            y, [&](const Epilogue& epilogue) { Conv(packed, x, absl::MakeSpan(y), epilogue); });
      }
    });
  }
}

// A tap in the padding contributes weight * 0, for every algorithm and instruction set.
TEST(Conv, DepthwiseTapsThatAreNotFiniteGiveTheSameOnEveryTarget) {
  const ConvShape s{1, 40, 9, 10, 40, 40, Square(3, 1, 1)};
  const std::vector<Half> x = Numbers(40 * 90, 1), w = Numbers(40 * 9, 2, Contents::kSpecial);
  std::vector<bool> first;
  ForEachSimdTarget([&] {
    std::vector<Half> y(40 * 90);
    Conv(PackConv(s, w, {}), x, absl::MakeSpan(y));
    std::vector<bool> is_nan(y.size());
    std::transform(y.begin(), y.end(), is_nan.begin(),
                   [](Half value) { return std::isnan(ToFloat(value)); });
    if (first.empty()) first = is_nan;
    EXPECT_EQ(is_nan, first);
  });
  EXPECT_NE(std::count(first.begin(), first.end(), true), 0);
}

TEST(Conv, SpecialNumbersTravelLikeInThePlainSum) {
  const ConvShape s{1, 3, 9, 10, 9, 1, Square(3, 1, 1)};
  ForEachSimdTarget([&] {
    for (Contents contents : {Contents::kSubnormal, Contents::kLarge, Contents::kSpecial}) {
      const std::vector<Half> x = Numbers(3 * 90, 1, contents), w = Numbers(9 * 27, 2, contents);
      const std::vector<float> bias = Floats(9, 3);
      std::vector<Half> y(9 * 90);
      WithRelu(
          y, [&](const Epilogue& relu) { Conv(PackConv(s, w, bias), x, absl::MakeSpan(y), relu); });
      // Checks only inner outputs: in the padding, a weight that is not finite gives a NaN.
      const std::vector<Half> want = Reference(s, x, w, bias, /*relu=*/true);
      for (int64_t o = 0; o < 9; ++o) {
        for (int64_t i = 1; i < 8; ++i) {
          for (int64_t j = 1; j < 9; ++j) {
            const int64_t at = (o * 9 + i) * 10 + j;
            ExpectSame({y[at]}, {want[at]});
          }
        }
      }
    }
  });
}

// Two weights of each row are not zero. A zero that meets an infinity gives a NaN.
TEST(Conv, ZerosAmongWeightsDoNotShow) {
  for (const ConvShape& s : {ConvShape{2, 40, 12, 13, 14, 1, {}}, {1, 19, 33, 31, 70, 1, {}}}) {
    std::vector<Half> w(s.out_channels * s.in_channels);
    for (int64_t o = 0; o < s.out_channels; ++o) {
      Half* const row = w.data() + o * s.in_channels;
      row[o * 7 % s.in_channels] = ToHalf(0.75f);
      row[(o * 7 + 3) % s.in_channels] = ToHalf(-0.25f);
    }
    const std::vector<float> bias = Floats(s.out_channels, 3);
    const PackedConv packed = PackConv(s, w, bias);
    EXPECT_LT(packed.bytes(), static_cast<int64_t>(w.size() * sizeof(Half)));
    for (Contents contents : {Contents::kNormal, Contents::kSubnormal, Contents::kSpecial}) {
      const std::vector<Half> x = Numbers(s.batch * s.in_channels * s.in_h * s.in_w, 1, contents);
      ForEachSimdTarget([&] {
        std::vector<Half> y(s.batch * s.out_channels * s.out_h() * s.out_w());
        WithThreads(2, [&] { Conv(packed, x, absl::MakeSpan(y)); });
        ExpectSame(y, Reference(s, x, w, bias));
        WithRelu(y, [&](const Epilogue& relu) { Conv(packed, x, absl::MakeSpan(y), relu); });
        ExpectSame(y, Reference(s, x, w, bias, /*relu=*/true));
      });
    }
  }
}

TEST(Conv, KernelThatFitsNowhereGivesNothing) {
  for (int64_t groups : {1, 4}) {
    const ConvShape s{1, 4, 2, 2, 4, groups, Square(3, 1, 0)};
    Conv(PackConv(s, Numbers(36 * 4 / groups), {}), Numbers(16), {});
  }
}

TEST(Conv, FloatWeightsAreRoundedFirst) {
  const ConvShape s{1, 1, 1, 2, 1, 1, {}};
  const std::vector<float> w = {1.0f + 0x1p-12f};
  const std::vector<Half> x = {kHalfOne, kHalfOne};
  std::vector<Half> y(2);
  Conv(PackConv(s, w, {}), x, absl::MakeSpan(y));
  EXPECT_EQ(y[0], kHalfOne);
}

TEST(Conv, PackedWeightsStayHalf) {
  const ConvShape s{1, 64, 56, 56, 64, 1, Square(3, 1, 1)};
  EXPECT_LE(PackConv(s, Numbers(64 * 64 * 9), {}).bytes(), 64 * 64 * 9 * 2 + 64 * 4);
}

TEST(Conv, StridesOf1x1TakeSamples) {
  const auto takes_samples = [](const Window& window) {
    const std::vector<Half> w = Numbers(6 * 5 * window.kernel_h * window.kernel_w);
    const PackedConv packed = PackConv({1, 5, 17, 18, 6, 1, window}, w, {});
    return packed.state().geometry.sampling.has_value();
  };
  EXPECT_TRUE(takes_samples(Square(1, 4, 0)));
  EXPECT_FALSE(takes_samples(Square(1, 1, 0)));
  EXPECT_FALSE(takes_samples({1, 1, 2, 2, 1, 1, 0, 0, 2, 3})) << "padding is read";
  EXPECT_FALSE(takes_samples(Square(2, 2, 0)));
}

// Short rows fill vectors badly, and each of many small images would be unfolded alone.
TEST(Conv, SmallImagesOfALargeBatchAreLanes) {
  const auto kind = [](const ConvShape& s) {
    return PackConv(s, ConvWeightsOf(s), {}).state().weights->kind;
  };
  EXPECT_EQ(kind({128, 8, 14, 14, 16, 1, Square(3, 2, 1)}), ConvKind::kImages);
  EXPECT_NE(kind({16, 8, 14, 14, 16, 1, Square(3, 2, 1)}), ConvKind::kImages);
  EXPECT_NE(kind({33, 8, 14, 14, 16, 1, Square(3, 2, 1)}), ConvKind::kImages) << "15 lanes idle";
  EXPECT_NE(kind({128, 8, 40, 40, 16, 1, Square(3, 2, 1)}), ConvKind::kImages);
  EXPECT_EQ(kind({128, 32, 14, 14, 32, 1, Square(3, 1, 1)}), ConvKind::kWinograd);
}

// Tiles of one or two vectors of positions are slower than those of channels.
TEST(Conv, FewPositionsPutChannelsIntoVectors) {
  for (const int64_t batch : {int64_t{1}, int64_t{3}}) {
    ExpectCloseToPlainConv({batch, 24, 4, 4, 48, 1, {}}, ConvKind::kMatrix, 1e-5);
    ExpectCloseToPlainConv({batch, 8, 7, 7, 32, 1, {4, 4, 1, 1, 1, 1, 0, 0, 0, 0}},
                           ConvKind::kMatrix, 1e-5);
  }
}

}  // namespace
}  // namespace anemone::math
