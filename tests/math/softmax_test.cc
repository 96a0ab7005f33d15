#include "math/reduce/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// Rounds where softmax.h says; computes exp and sum in double.
std::vector<double> Reference(const std::vector<Half>& row) {
  double max = -HUGE_VAL;
  for (Half x : row) max = std::fmax(max, ToDouble(x));
  std::vector<double> e;
  double sum = 0;
  for (Half x : row) {
    double d = ToDouble(ToHalf(ToDouble(x) - max));
    if (std::isnan(d)) d = 0;
    e.push_back(ToDouble(ToHalf(std::exp(d))));
    sum += e.back();
  }
  for (double& value : e) value /= sum;
  return e;
}

// exp has an error of 1e-6, so that its Half may differ by one step: 2^-11 relative.
constexpr double kStep = 5e-4;

TEST(Softmax, RowsOfEdgeSizes) {
  ForEachSimdTarget([] {
    std::vector<int64_t> sizes = EdgeSizes();
    sizes.push_back(1000);
    for (int64_t size : sizes) {
      for (float scale : {1.0f, 20.0f}) {
        std::vector<Half> x = Numbers(3 * size), y(3 * size);
        for (Half& value : x) value = ToHalf(ToFloat(value) * scale);
        Softmax({1, 1, 1, 3, size}, AxisSet({kAxisW}), x, absl::MakeSpan(y));
        for (int64_t r = 0; r < 3; ++r) {
          ExpectClose({y.begin() + r * size, y.begin() + (r + 1) * size},
                      Reference({x.begin() + r * size, x.begin() + (r + 1) * size}), kStep);
        }
      }
    }
  });
}

// Vectors have elements of many rows. In place.
TEST(Softmax, ManyShortRows) {
  ForEachSimdTarget([] {
    for (int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 21, 56, 63, 64, 65}) {
      for (int64_t rows : {1, 2, 127, 128, 300}) {
        const std::vector<Half> x = Numbers(rows * size);
        std::vector<Half> y = x;
        y.push_back(Half{0x1234});
        const absl::Span<Half> all = absl::MakeSpan(y).subspan(0, rows * size);
        Softmax({1, 1, rows, 1, size}, AxisSet({kAxisW}), all, all);
        for (int64_t r = 0; r < rows; ++r) {
          ExpectClose({y.begin() + r * size, y.begin() + (r + 1) * size},
                      Reference({x.begin() + r * size, x.begin() + (r + 1) * size}), kStep);
        }
        EXPECT_EQ(y.back().bits, 0x1234);
      }
    }
  });
}

TEST(Softmax, ThreadsDoNotShow) {
  for (int64_t size : {4, 21, 100}) {
    const Extents extents = {1, 1, 1, 5000, size};
    const std::vector<Half> x = Numbers(Count(extents));
    ExpectThreadsDoNotShow(Count(extents),
                           [&](absl::Span<Half> y) { Softmax(extents, AxisSet({kAxisW}), x, y); });
  }
}

TEST(Softmax, AnySetOfAxes) {
  const Extents extents = {2, 3, 4, 5, 7};
  const Strides strides = DenseStrides(extents);
  const std::vector<Half> x = Numbers(Count(extents));
  ForEachSimdTarget([&] {
    for (int mask = 0; mask < 32; ++mask) {
      AxisSet axes;
      for (int i = 0; i < kRank; ++i) {
        if (mask >> i & 1) axes.Add(i);
      }
      std::vector<Half> y(x.size());
      Softmax(extents, axes, x, absl::MakeSpan(y));
      // Collects the elements of each row, keyed by the index along the other axes.
      std::vector<std::vector<Half>> rows(x.size()), results(x.size());
      for (int64_t at = 0; at < static_cast<int64_t>(x.size()); ++at) {
        int64_t kept = 0;
        for (int i = 0; i < kRank; ++i) {
          if (!axes.Has(i)) kept += at / strides[i] % extents[i] * strides[i];
        }
        rows[kept].push_back(x[at]);
        results[kept].push_back(y[at]);
      }
      for (size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].empty()) ExpectClose(results[i], Reference(rows[i]), kStep);
      }
    }
  });
}

TEST(Softmax, InfinitiesAndNan) {
  const Half minus{0xfc00};
  ForEachSimdTarget([&] {
    for (const Extents& extents : {Extents{1, 1, 1, 1, 4}, Extents{1, 1, 4, 1, 1}}) {
      const AxisSet axes({kAxisC, kAxisW});
      std::vector<Half> y(4);
      Softmax(extents, axes, {kHalfZero, kHalfInfinity, kHalfMax, minus}, absl::MakeSpan(y));
      ExpectSame(y, {kHalfZero, kHalfOne, kHalfZero, kHalfZero});
      Softmax(extents, axes, {minus, minus, minus, minus}, absl::MakeSpan(y));
      ExpectSame(y, std::vector<Half>(4, ToHalf(0.25f)));
      Softmax(extents, axes, {kHalfOne, minus, minus, kHalfOne}, absl::MakeSpan(y));
      ExpectSame(y, {ToHalf(0.5f), kHalfZero, kHalfZero, ToHalf(0.5f)});
      Softmax(extents, axes, {kHalfMax, ToHalf(-65504.0f), kHalfZero, kHalfOne}, absl::MakeSpan(y));
      ExpectSame(y, {kHalfOne, kHalfZero, kHalfZero, kHalfZero});
    }
  });
}

// Columns of a plane (the strided code) at widths around a vector, also in place.
TEST(Softmax, ColumnsOfEdgeSizesInPlace) {
  ForEachSimdTarget([] {
    for (int64_t width : EdgeSizes()) {
      std::vector<Half> x = Numbers(5 * width);
      std::vector<Half> y = x;
      y.push_back(Half{0x1234});
      Softmax({1, 1, 5, 1, width}, AxisSet({kAxisC}), absl::MakeSpan(y).subspan(0, 5 * width),
              absl::MakeSpan(y).subspan(0, 5 * width));
      for (int64_t j = 0; j < width; ++j) {
        std::vector<Half> column, result;
        for (int64_t i = 0; i < 5; ++i) {
          column.push_back(x[i * width + j]);
          result.push_back(y[i * width + j]);
        }
        ExpectClose(result, Reference(column), kStep);
      }
      EXPECT_EQ(y.back().bits, 0x1234);
    }
  });
}

}  // namespace
}  // namespace anemone::math
