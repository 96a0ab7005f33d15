#include "math/reduce/normalize.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "math/move/transpose.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

double Value(const NormalizeTerm& term, const Extents& extents, int64_t at, double absent) {
  if (term.values.empty()) return absent;
  const Strides strides = DenseStrides(extents), term_strides = DenseStrides(term.extents);
  int64_t from = 0;
  for (int i = 0; i < kRank; ++i) {
    if (term.extents[i] != 1) from += at / strides[i] % extents[i] * term_strides[i];
  }
  return term.values[from];
}

// The elements of each row, keyed by the index along the other axes.
std::map<int64_t, std::vector<int64_t>> Rows(const Extents& extents, AxisSet axes) {
  const Strides strides = DenseStrides(extents);
  std::map<int64_t, std::vector<int64_t>> rows;
  for (int64_t at = 0; at < Count(extents); ++at) {
    int64_t kept = 0;
    for (int i = 0; i < kRank; ++i) {
      if (!axes.Has(i)) kept += at / strides[i] % extents[i] * strides[i];
    }
    rows[kept].push_back(at);
  }
  return rows;
}

void Check(const Extents& extents, AxisSet axes, const NormalizeOptions& options,
           const NormalizeTerm& gamma, const NormalizeTerm& beta) {
  const std::vector<Half> x = Numbers(Count(extents));
  std::vector<double> want(x.size());
  for (const auto& [kept, row] : Rows(extents, axes)) {
    double mean = 0, squares = 0;
    for (int64_t at : row) mean += ToDouble(x[at]) / static_cast<double>(row.size());
    if (!options.subtract_mean) mean = 0;
    for (int64_t at : row) squares += std::pow(ToDouble(x[at]) - mean, 2);
    const double epsilon = ToDouble(ToHalf(options.epsilon));
    const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + epsilon);
    for (int64_t at : row) {
      want[at] = (ToDouble(x[at]) - mean) * scale * Value(gamma, extents, at, 1) +
                 Value(beta, extents, at, 0);
    }
  }
  // With gamma and beta there are three roundings.
  const bool is_plain = gamma.values.empty() && beta.values.empty();
  const double tolerance = is_plain ? 1e-5 : 4e-3;
  std::vector<Half> first;
  ForEachSimdTarget([&] {
    std::vector<Half> y = x;
    Normalize(extents, axes, options, gamma, beta, y, absl::MakeSpan(y));  // in place
    ExpectClose(y, want, tolerance);
    if (first.empty()) first = y;
    ExpectSame(y, first);
  });
}

TEST(Normalize, LayerNormOfEdgeSizes) {
  for (int64_t size : EdgeSizes()) {
    const std::vector<float> gamma = Floats(size, 2), beta = Floats(size, 3);
    const Extents term = {1, 1, 1, 1, size};
    Check({1, 1, 1, 3, size}, AxisSet({kAxisW}), {}, {gamma, term}, {beta, term});
    Check({1, 1, 1, 3, size}, AxisSet({kAxisW}), {1e-3f, false}, {gamma, term}, {});
  }
}

TEST(Normalize, ManyRows) {
  for (int64_t size : {17, 24, 128, 300, 3000}) {
    const std::vector<float> gamma = Floats(size, 2), beta = Floats(21, 3);
    const Extents term = {1, 1, 1, 1, size}, by_row = {1, 1, 1, 21, 1};
    Check({1, 1, 2, 21, size}, AxisSet({kAxisW}), {}, {gamma, term}, {beta, by_row});
    Check({1, 1, 2, 21, size}, AxisSet({kAxisW}), {1e-3f, false}, {}, {beta, by_row});
  }
}

TEST(Normalize, AnySetOfAxesWithoutTerms) {
  for (int mask = 1; mask < 32; ++mask) {
    AxisSet axes;
    for (int i = 0; i < kRank; ++i) {
      if (mask >> i & 1) axes.Add(i);
    }
    Check({2, 3, 4, 5, 7}, axes, {}, {}, {});
  }
}

TEST(Normalize, InstanceAndGroupNorm) {
  const std::vector<float> gamma = Floats(12, 2), beta = Floats(12, 3);
  const Extents channel = {1, 1, 12, 1, 1}, grouped = {1, 3, 4, 1, 1};
  Check({2, 1, 12, 5, 9}, AxisSet({kAxisH, kAxisW}), {}, {gamma, channel}, {beta, channel});
  Check({2, 3, 4, 5, 9}, AxisSet({kAxisC, kAxisH, kAxisW}), {}, {gamma, grouped}, {beta, grouped});
}

// Layer norm over the channels of an image: rows are not contiguous.
TEST(Normalize, ChannelsFirst) {
  const std::vector<float> gamma = Floats(12, 2), beta = Floats(12, 3);
  const Extents channel = {1, 1, 12, 1, 1};
  Check({2, 1, 12, 5, 9}, AxisSet({kAxisC}), {}, {gamma, channel}, {beta, channel});
  const std::vector<float> plane = Floats(45, 4);
  Check({2, 1, 12, 5, 9}, AxisSet({kAxisC}), {}, {gamma, channel}, {plane, {1, 1, 1, 5, 9}});
}

// Columns next to each other are normalized where they are, with the bits of rows.
TEST(Normalize, ColumnsHaveTheBitsOfRows) {
  for (int64_t count : {1, 8, 13, 16, 31, 33, 100}) {
    const std::vector<float> gamma = Floats(count, 2), beta = Floats(count, 3);
    for (int64_t inner : {7, 8, 31, 32, 45, 70}) {
      const std::vector<Half> columns = Numbers(2 * count * inner);
      std::vector<Half> rows(columns.size()), want(columns.size());
      const std::array<int, kRank> swap = {0, 1, 4, 3, 2};
      Transpose({2, 1, count, 1, inner}, swap, columns, absl::MakeSpan(rows));
      ForEachSimdTarget([&] {
        std::vector<Half> normal(rows.size()), y = columns;
        Normalize({2, 1, inner, 1, count}, AxisSet({kAxisW}), {}, {gamma, {1, 1, 1, 1, count}},
                  {beta, {1, 1, 1, 1, count}}, rows, absl::MakeSpan(normal));
        Transpose({2, 1, inner, 1, count}, swap, normal, absl::MakeSpan(want));
        Normalize({2, 1, count, 1, inner}, AxisSet({kAxisC}), {}, {gamma, {1, 1, count, 1, 1}},
                  {beta, {1, 1, count, 1, 1}}, y, absl::MakeSpan(y));
        ExpectSame(y, want);
      });
    }
  }
}

// A variance computed in one pass would be lost in rounding here.
TEST(Normalize, SmallVarianceOnALargeMean) {
  std::vector<Half> x(64), y(64);
  for (int i = 0; i < 64; ++i) x[i] = ToHalf(2048.0f + static_cast<float>(i % 2) * 2);
  Normalize({1, 1, 1, 1, 64}, AxisSet({kAxisW}), {1e-6f}, {}, {}, x, absl::MakeSpan(y));
  for (int i = 0; i < 64; ++i) EXPECT_NEAR(ToFloat(y[i]), i % 2 ? 1.0f : -1.0f, 1e-3f);
}

TEST(Normalize, L2) {
  const Extents extents = {2, 1, 6, 5, 7};
  for (AxisSet axes : {AxisSet({kAxisC}), AxisSet({kAxisW}), AxisSet({kAxisC, kAxisH, kAxisW})}) {
    const std::vector<Half> x = Numbers(Count(extents));
    std::vector<double> want(x.size());
    for (const auto& [kept, row] : Rows(extents, axes)) {
      double squares = 0;
      for (int64_t at : row) squares += std::pow(ToDouble(x[at]), 2);
      for (int64_t at : row) want[at] = ToDouble(x[at]) / std::sqrt(squares + 1e-3);
    }
    ForEachSimdTarget([&] {
      std::vector<Half> y(x.size());
      L2Normalize(extents, axes, 1e-3f, x, absl::MakeSpan(y));
      ExpectClose(y, want, 1e-5);
    });
  }
  std::vector<Half> zeros(5), y(5, kHalfOne);
  L2Normalize({1, 1, 1, 1, 5}, AxisSet({kAxisW}), 0.0f, zeros, absl::MakeSpan(y));
  ExpectSame(y, zeros);
}

}  // namespace
}  // namespace anemone::math
