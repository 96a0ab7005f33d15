#include "math/move/resize.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

TEST(Resize, NearestMovesBits) {
  const std::vector<int32_t> rows = {0, 0, 2, 1, 1}, columns = {3, 0, 0, 1, 2, 2, 3};
  const std::vector<Half> x = Numbers(3 * 3 * 4, 1, Contents::kSpecial);
  std::vector<Half> y(3 * 5 * 7);
  ResizeNearest({3, 3, 4}, rows, columns, x, absl::MakeSpan(y));
  for (int p = 0; p < 3; ++p) {
    for (int i = 0; i < 5; ++i) {
      for (int j = 0; j < 7; ++j) {
        ASSERT_EQ(y[(p * 5 + i) * 7 + j], x[(p * 3 + rows[i]) * 4 + columns[j]]);
      }
    }
  }
}

TEST(Resize, NearestRepeatsRowsOfAnyLength) {
  ForEachSimdTarget([] {
    for (int64_t times : {1, 2, 3, 4}) {
      for (int64_t width : EdgeSizes()) {
        std::vector<int32_t> rows, columns;
        for (int32_t i = 0; i < 2 * times; ++i) rows.push_back(i / static_cast<int32_t>(times));
        for (int32_t j = 0; j < width * times; ++j) {
          columns.push_back(j / static_cast<int32_t>(times));
        }
        const std::vector<Half> x = Numbers(3 * 2 * width, 1, Contents::kSpecial);
        std::vector<Half> y, want;
        for (int64_t row = 0; row < 6 * times; ++row) {
          for (int32_t column : columns) want.push_back(x[row / times * width + column]);
        }
        y.resize(want.size());
        ResizeNearest({3, 2, width}, rows, columns, x, absl::MakeSpan(y));
        ASSERT_EQ(y, want) << times << " times " << width;
      }
    }
  });
}

// Many small planes, with rows in any order.
TEST(Resize, NearestOfManyPlanes) {
  constexpr int64_t kPlanes = 150;
  for (const std::vector<int32_t>& rows : {std::vector<int32_t>{0, 0, 1, 1, 2, 2}, {2, 0, 2}}) {
    for (int64_t width : {5, 7, 40}) {
      std::vector<int32_t> columns(2 * width);
      for (size_t j = 0; j < columns.size(); ++j) columns[j] = static_cast<int32_t>(j / 2);
      const std::vector<Half> x = Numbers(kPlanes * 3 * width, 1, Contents::kSpecial);
      std::vector<Half> want;
      for (int64_t plane = 0; plane < kPlanes; ++plane) {
        for (int32_t row : rows) {
          for (int32_t column : columns) want.push_back(x[(plane * 3 + row) * width + column]);
        }
      }
      ForEachSimdTarget([&] {
        std::vector<Half> y(want.size());
        ResizeNearest({kPlanes, 3, width}, rows, columns, x, absl::MakeSpan(y));
        ASSERT_EQ(y, want) << width;
      });
    }
  }
}

TEST(Resize, NearestFinishesEveryElementOnce) {
  const std::vector<int32_t> rows = {0, 0, 1, 1}, columns = {2, 0, 1};
  const std::vector<Half> x = Numbers(5 * 2 * 3, 1);
  std::vector<Half> y(5 * 4 * 3);
  ResizeNearest({5, 2, 3}, rows, columns, x, absl::MakeSpan(y));
  WithRelu(y, [&](const Epilogue& relu) {
    ResizeNearest({5, 2, 3}, rows, columns, x, absl::MakeSpan(y), relu);
  });
}

// Taps with arbitrary indices and weights, repeated and out of order.
AxisTaps MakeTaps(int64_t taps, int64_t out, int64_t in, int seed) {
  AxisTaps axis{taps, {}, {}};
  for (Half half : Numbers(taps * out, seed)) {
    axis.indices.push_back(half.bits % in);
    axis.weights.push_back(ToFloat(half));
  }
  return axis;
}

TEST(Resize, LinearOfAnyTapsAtEdgeSizes) {
  ForEachSimdTarget([] {
    for (int64_t taps : {1, 2, 4}) {
      for (int64_t width : EdgeSizes()) {
        const AxisTaps rows = MakeTaps(taps, 9, 5, 1), columns = MakeTaps(taps, width, 6, 2);
        const std::vector<Half> x = Numbers(2 * 5 * 6, 3);
        std::vector<double> want;
        for (int64_t p = 0; p < 2; ++p) {
          for (int64_t i = 0; i < 9; ++i) {
            for (int64_t j = 0; j < width; ++j) {
              double sum = 0;
              for (int64_t r = i * taps; r < (i + 1) * taps; ++r) {
                for (int64_t c = j * taps; c < (j + 1) * taps; ++c) {
                  sum += static_cast<double>(rows.weights[r]) * columns.weights[c] *
                         ToDouble(x[(p * 5 + rows.indices[r]) * 6 + columns.indices[c]]);
                }
              }
              want.push_back(sum);
            }
          }
        }
        std::vector<Half> y(want.size());
        ResizeLinear({2, 5, 6}, rows, columns, x, absl::MakeSpan(y));
        ExpectClose(y, want, 1e-6);
      }
    }
  });
}

TEST(Resize, WholeWeightsAreExact) {
  const AxisTaps rows{2, {0, 1, 1, 1}, {1.0f, 0.0f, 0.0f, 1.0f}};
  const AxisTaps columns{2, {0, 1, 1, 1}, {0.5f, 0.5f, 1.0f, 0.0f}};
  const std::vector<Half> x = {ToHalf(1.0f), ToHalf(2.0f), ToHalf(3.0f), ToHalf(4.0f)};
  std::vector<Half> y(4);
  ResizeLinear({1, 2, 2}, rows, columns, x, absl::MakeSpan(y));
  ExpectSame(y, {ToHalf(1.5f), ToHalf(2.0f), ToHalf(3.5f), ToHalf(4.0f)});
}

}  // namespace
}  // namespace anemone::math
