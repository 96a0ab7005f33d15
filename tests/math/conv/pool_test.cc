#include "math/conv/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

struct PoolCase {
  std::string name;
  PoolShape shape;
};

void PrintTo(const PoolCase& c, std::ostream* out) { *out << c.name; }

Window Square(int64_t kernel, int64_t stride, int64_t pad, int64_t dilation = 1) {
  return {kernel, kernel, stride, stride, dilation, dilation, pad, pad, pad, pad};
}

const PoolCase kPoolCases[] = {
    {"two_stride2", {5, 8, 10, 4, 5, Square(2, 2, 0)}},
    {"three_stride2_padded", {5, 13, 35, 7, 18, Square(3, 2, 1)}},
    {"three_stride1", {3, 7, 7, 7, 7, Square(3, 1, 1)}},
    {"five_stride1", {3, 9, 20, 9, 20, Square(5, 1, 2)}},
    {"ceil_mode", {2, 8, 8, 4, 4, Square(3, 2, 0)}},
    {"dilated", {2, 12, 13, 8, 9, Square(3, 1, 0, 2)}},
    {"stride3", {2, 16, 100, 5, 33, Square(3, 3, 0)}},
    {"global", {9, 7, 7, 1, 1, Square(7, 1, 0)}},
    {"global_padded", {2, 3, 3, 1, 1, Square(5, 1, 1)}},
    {"wide", {2, 5, 150, 5, 150, Square(3, 1, 1)}},
    {"bands", {1, 300, 260, 150, 130, Square(2, 2, 0)}},
    {"thirteen", {9, 13, 13, 13, 13, Square(13, 1, 6)}},
    {"thirteen_unpadded", {2, 25, 25, 13, 13, Square(13, 1, 0)}},
    {"nine_stride2", {3, 21, 70, 11, 35, Square(9, 2, 4)}},
    {"four_stride4", {3, 16, 100, 4, 25, Square(4, 4, 0)}},
    {"rows_only", {30, 74, 32, 37, 32, {2, 1, 2, 1, 1, 1, 0, 0, 0, 0}}},
    {"columns_only", {30, 9, 132, 9, 33, {1, 4, 1, 4, 1, 1, 0, 0, 0, 0}}},
    {"one_column", {7, 61, 1, 31, 1, {3, 1, 2, 1, 1, 1, 1, 0, 1, 0}}},
    {"one_column_stride4", {3, 200, 1, 50, 1, {4, 1, 4, 1, 1, 1, 0, 0, 0, 0}}},
    {"one_column_with_pads_beside", {3, 40, 1, 40, 3, {1, 1, 1, 1, 1, 1, 0, 1, 0, 1}}},
    {"dilated_stride2", {2, 20, 33, 9, 15, Square(3, 2, 1, 2)}},
    {"pads_beyond_kernel", {2, 3, 3, 11, 11, Square(3, 1, 5)}},
    {"large_bands", {2, 200, 301, 200, 301, Square(9, 1, 4)}},
    {"uneven", {2, 6, 9, 6, 5, {2, 3, 1, 2, 1, 1, 1, 0, 0, 2}}},
};

enum class Kind { kMax, kInside, kInsideAndPads };

std::vector<double> Reference(const PoolShape& s, Kind kind, const std::vector<Half>& x) {
  const Window& w = s.window;
  std::vector<double> y;
  for (int64_t p = 0; p < s.planes; ++p) {
    for (int64_t i = 0; i < s.out_h; ++i) {
      for (int64_t j = 0; j < s.out_w; ++j) {
        double max = -HUGE_VAL, sum = 0;
        int inside = 0, padded = 0;
        for (int64_t kh = 0; kh < w.kernel_h; ++kh) {
          for (int64_t kw = 0; kw < w.kernel_w; ++kw) {
            const int64_t row = i * w.stride_h + kh * w.dilation_h - w.pad_top;
            const int64_t column = j * w.stride_w + kw * w.dilation_w - w.pad_left;
            padded += row < s.in_h + w.pad_bottom && column < s.in_w + w.pad_right;
            if (row < 0 || row >= s.in_h || column < 0 || column >= s.in_w) continue;
            const double value = ToDouble(x[(p * s.in_h + row) * s.in_w + column]);
            max = std::isnan(max) || std::isnan(value) ? NAN : std::fmax(max, value);
            sum += value;
            ++inside;
          }
        }
        const int count = kind == Kind::kInside ? inside : padded;
        y.push_back(kind == Kind::kMax ? max : sum / std::max(count, 1));
      }
    }
  }
  return y;
}

class PoolTest : public testing::TestWithParam<PoolCase> {};

TEST_P(PoolTest, EqualsThePlainWindow) {
  const PoolShape& s = GetParam().shape;
  ForEachSimdTarget([&] {
    for (Contents contents : {Contents::kNormal, Contents::kSubnormal, Contents::kSpecial}) {
      const std::vector<Half> x = Numbers(s.planes * s.in_h * s.in_w, 1, contents);
      std::vector<Half> y(s.planes * s.out_h * s.out_w);
      MaxPool(s, x, absl::MakeSpan(y));
      ExpectClose(y, Reference(s, Kind::kMax, x), 0);
      if (contents == Contents::kSpecial) continue;
      AveragePool(s, AverageDivisor::kInside, x, absl::MakeSpan(y));
      ExpectClose(y, Reference(s, Kind::kInside, x));
      AveragePool(s, AverageDivisor::kInsideAndPads, x, absl::MakeSpan(y));
      ExpectClose(y, Reference(s, Kind::kInsideAndPads, x));
    }
  });
}

// The maximum of +0 and -0 is +0 on every machine.
TEST_P(PoolTest, MaximumOfZeros) {
  const PoolShape& s = GetParam().shape;
  const Half kOrder[] = {ToHalf(-1.0f), Half{0x8000}, kHalfZero};
  std::vector<Half> x, ranks;
  for (Half half : Numbers(s.planes * s.in_h * s.in_w)) {
    const int rank = half.bits % 50 < 40 ? 0 : half.bits % 50 < 46 ? 1 : 2;
    x.push_back(kOrder[rank]);
    ranks.push_back(ToHalf(static_cast<float>(rank)));
  }
  const std::vector<double> want = Reference(s, Kind::kMax, ranks);
  ForEachSimdTarget([&] {
    std::vector<Half> y(want.size());
    MaxPool(s, x, absl::MakeSpan(y));
    for (size_t i = 0; i < y.size(); ++i) {
      if (want[i] < 0) continue;  // all padding
      ASSERT_EQ(y[i].bits, kOrder[static_cast<int>(want[i])].bits) << "element " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, PoolTest, testing::ValuesIn(kPoolCases),
                         [](const auto& info) { return info.param.name; });

TEST(Pool, WindowOutsideTheInput) {
  const PoolShape shape{1, 2, 2, 3, 3, Square(1, 2, 1)};  // the corners are in the padding
  const std::vector<Half> x(4, kHalfOne);
  std::vector<Half> y(9);
  MaxPool(shape, x, absl::MakeSpan(y));
  EXPECT_EQ(y[0].bits, 0xfc00);
  EXPECT_EQ(y[4], kHalfOne);
  AveragePool(shape, AverageDivisor::kInside, x, absl::MakeSpan(y));
  EXPECT_EQ(y[0], kHalfZero);
  EXPECT_EQ(y[4], kHalfOne);
}

TEST(Pool, ThreadsDoNotShow) {
  const PoolShape shape{20, 40, 41, 20, 20, Square(3, 2, 1)};
  const std::vector<Half> x = Numbers(20 * 40 * 41);
  ExpectThreadsDoNotShow(
      20 * 400, [&](absl::Span<Half> y) { AveragePool(shape, AverageDivisor::kInside, x, y); });
}

// Vectors of one column would have one element.
TEST(Pool, PlanesOfOneColumnAreRows) {
  const PoolShape turned = AsRows({7, 61, 1, 31, 1, {3, 1, 2, 1, 1, 1, 1, 0, 1, 0}});
  EXPECT_EQ(turned.in_h, 1);
  EXPECT_EQ(turned.out_w, 31);
  EXPECT_EQ(turned.window.stride_w, 2);
  EXPECT_EQ(turned.window.pad_right, 1);
  EXPECT_EQ(AsRows({3, 40, 1, 40, 3, {1, 1, 1, 1, 1, 1, 0, 1, 0, 1}}).in_h, 40) << "pads beside";
}

}  // namespace
}  // namespace anemone::math
