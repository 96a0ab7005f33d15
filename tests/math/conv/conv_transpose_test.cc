#include "math/conv/conv_transpose.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/math/conv/conv_testing.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// Adds every product of input and weight to its output, in double.
std::vector<double> TransposedReference(const ConvTransposeShape& s, const std::vector<Half>& x,
                                        const std::vector<Half>& w,
                                        const std::vector<float>& bias) {
  const Window& win = s.window;
  const int64_t group_in = s.in_channels / s.groups, group_out = s.out_channels / s.groups;
  const int64_t out_h = s.out_h(), out_w = s.out_w();
  std::vector<double> y(s.batch * s.out_channels * out_h * out_w);
  for (int64_t at = 0; at < static_cast<int64_t>(y.size()); ++at) {
    y[at] = bias[at / (out_h * out_w) % s.out_channels];
  }
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t c = 0; c < s.in_channels; ++c) {
      for (int64_t o = 0; o < group_out; ++o) {
        for (int64_t i = 0; i < s.in_h; ++i) {
          for (int64_t j = 0; j < s.in_w; ++j) {
            for (int64_t kh = 0; kh < win.kernel_h; ++kh) {
              for (int64_t kw = 0; kw < win.kernel_w; ++kw) {
                const int64_t row = i * win.stride_h + kh * win.dilation_h - win.pad_top;
                const int64_t column = j * win.stride_w + kw * win.dilation_w - win.pad_left;
                if (row < 0 || row >= out_h || column < 0 || column >= out_w) continue;
                const int64_t channel = n * s.out_channels + c / group_in * group_out + o;
                y[(channel * out_h + row) * out_w + column] +=
                    ToDouble(x[((n * s.in_channels + c) * s.in_h + i) * s.in_w + j]) *
                    ToDouble(w[((c * group_out + o) * win.kernel_h + kh) * win.kernel_w + kw]);
              }
            }
          }
        }
      }
    }
  }
  return y;
}

struct TransposedCase {
  std::string name;
  ConvTransposeShape shape;
};

void PrintTo(const TransposedCase& c, std::ostream* out) { *out << c.name; }

const TransposedCase kTransposedCases[] = {
    {"two_stride2", {2, 5, 6, 7, 9, 1, Square(2, 2, 0)}},
    {"three_stride2", {1, 5, 6, 7, 9, 1, Square(3, 2, 1), 1, 1}},
    {"four_stride2", {1, 5, 6, 7, 9, 1, Square(4, 2, 1)}},
    {"three_stride1", {1, 4, 8, 9, 5, 1, Square(3, 1, 1)}},
    {"kernel_below_stride", {1, 4, 5, 4, 6, 1, Square(2, 3, 0), 1, 0}},
    {"dilated", {1, 4, 7, 6, 5, 1, Square(3, 2, 1, 2)}},
    {"dilated_coprime", {1, 4, 7, 6, 5, 1, Square(3, 2, 2, 3)}},
    {"grouped", {2, 6, 5, 6, 8, 2, Square(3, 2, 1)}},
    {"depthwise", {1, 6, 5, 6, 6, 6, Square(4, 2, 1)}},
    {"uneven", {1, 3, 6, 5, 4, 1, {3, 4, 1, 3, 1, 1, 0, 2, 1, 0}, 0, 2}},
    {"one_row", {1, 6, 1, 40, 5, 1, {1, 4, 1, 2, 1, 1, 0, 1, 0, 1}}},
    {"one_position", {1, 10, 1, 1, 7, 1, Square(4, 1, 0)}},
    {"deep", {1, 500, 3, 4, 6, 1, Square(2, 2, 0)}},
    // Outputs that do not overlap, in rows of about the length of a vector.
    {"pairs", {2, 3, 4, 67, 5, 1, Square(2, 2, 0)}},
    {"fours", {1, 3, 5, 33, 2, 1, Square(4, 4, 0)}},
    {"by_rows", {1, 5, 3, 40, 3, 1, {3, 1, 3, 1, 1, 1, 0, 0, 0, 0}}},
    {"by_columns", {1, 5, 3, 40, 3, 1, {1, 3, 1, 3, 1, 1, 0, 0, 0, 0}}},
    {"pairs_grouped", {2, 6, 4, 19, 8, 2, Square(2, 2, 0)}},
    {"pairs_depthwise", {2, 6, 13, 13, 6, 6, Square(2, 2, 0)}},
    {"threes_depthwise", {1, 6, 5, 40, 12, 6, Square(3, 3, 0)}},
    {"pairs_cut_off", {1, 3, 4, 20, 5, 1, {2, 2, 2, 2, 1, 1, 0, 0, 1, 1}}},
    {"pairs_and_zeros", {1, 3, 4, 20, 5, 1, Square(2, 2, 0), 1, 1}},
    {"images", {48, 5, 6, 7, 9, 1, Square(3, 2, 1), 1, 1}},
    // Small planes whose outputs overlap, with 8 input channels or more.
    {"small_planes", {3, 20, 8, 8, 10, 1, Square(5, 1, 0)}},
    {"few_positions", {2, 40, 2, 3, 12, 1, Square(4, 2, 0)}},
    {"few_positions_grouped", {1, 24, 2, 2, 10, 2, Square(3, 1, 0)}},
    {"few_positions_distant", {1, 8, 1, 3, 2, 1, {1, 4, 1, 1, 1, 5, 0, 0, 0, 0}}},
    {"small_planes_of_many_channels", {1, 40, 9, 9, 130, 1, Square(4, 2, 1)}},
    {"small_planes_stride2", {1, 33, 6, 7, 12, 1, Square(4, 2, 1)}},
    {"small_planes_stride3", {1, 9, 5, 19, 7, 1, Square(4, 3, 0), 1, 2}},
    {"small_planes_dilated", {2, 8, 7, 6, 5, 1, Square(3, 2, 2, 3)}},
    {"small_planes_grouped", {2, 24, 5, 6, 10, 2, Square(3, 2, 1)}},
    {"small_planes_uneven", {1, 8, 6, 18, 3, 1, {3, 4, 1, 3, 1, 1, 0, 2, 1, 0}, 0, 2}},
    {"images_in_some_phases", {40, 3, 2, 2, 4, 1, Square(3, 2, 0)}},
    {"images_and_zeros", {40, 3, 5, 4, 6, 1, Square(2, 3, 0)}},
};

class ConvTransposeTest : public testing::TestWithParam<TransposedCase> {};

TEST_P(ConvTransposeTest, EqualsTheScatteredSum) {
  const ConvTransposeShape& s = GetParam().shape;
  const std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
  const std::vector<float> bias = Floats(s.out_channels, 3);
  const std::vector<double> want = TransposedReference(s, x, w, bias);
  std::vector<Half> first;
  ForEachSimdTarget([&] {
    std::vector<Half> y(want.size());
    const PackedConvTranspose packed = PackConvTranspose(s, w, bias);
    ConvTranspose(packed, x, absl::MakeSpan(y));
    ExpectClose(y, want, 1e-5);
    WithRelu(y, [&](const Epilogue& relu) { ConvTranspose(packed, x, absl::MakeSpan(y), relu); });
    if (first.empty()) first = y;
    ExpectSame(y, first);
  });
}

TEST_P(ConvTransposeTest, ThreadsDoNotShow) {
  const ConvTransposeShape& s = GetParam().shape;
  const std::vector<Half> x = ConvInput(s), w = ConvWeightsOf(s);
  const PackedConvTranspose packed = PackConvTranspose(s, w, {});
  ExpectThreadsDoNotShow(OutputsOf(s), [&](absl::Span<Half> y) { ConvTranspose(packed, x, y); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvTransposeTest, testing::ValuesIn(kTransposedCases),
                         [](const auto& info) { return info.param.name; });

// A convolution for each phase would multiply the padding around small planes.
TEST(ConvTranspose, SmallPlanesThatOverlapAreProductsOfTaps) {
  const auto way = [](const ConvTransposeShape& s) {
    return PackConvTranspose(s, ConvWeightsOf(s), {}).way;
  };
  EXPECT_EQ(way({16, 20, 8, 8, 10, 1, Square(5, 1, 0)}), TransposeWay::kCol2im);
  EXPECT_EQ(way({1, 128, 6, 6, 64, 1, Square(4, 2, 0)}), TransposeWay::kCol2im);
  EXPECT_EQ(way({1, 128, 2, 2, 128, 1, Square(4, 2, 0)}), TransposeWay::kCol2im);
  EXPECT_EQ(way({1, 128, 6, 6, 64, 1, Square(2, 2, 0)}), TransposeWay::kChannels);
  EXPECT_EQ(way({128, 16, 7, 7, 8, 1, Square(3, 2, 1)}), TransposeWay::kPhases)
      << "images as lanes";
  EXPECT_EQ(way({1, 4, 6, 6, 64, 1, Square(4, 2, 0)}), TransposeWay::kPhases) << "few terms";
  EXPECT_EQ(way({1, 128, 33, 32, 64, 1, Square(4, 2, 0)}), TransposeWay::kPhases) << "large planes";
  EXPECT_EQ(way({1, 128, 4, 64, 64, 1, Square(4, 2, 0)}), TransposeWay::kCol2im);
  EXPECT_EQ(way({1, 128, 4, 65, 64, 1, Square(4, 2, 0)}), TransposeWay::kPhases) << "long rows";
  EXPECT_EQ(way({1, 128, 6, 6, 64, 1, Square(4, 2, 0), 0, 15}), TransposeWay::kCol2im);
  EXPECT_EQ(way({1, 128, 6, 6, 64, 1, Square(4, 2, 0), 0, 16}), TransposeWay::kPhases)
      << "outputs far from the inputs";
}

}  // namespace
}  // namespace anemone::math
