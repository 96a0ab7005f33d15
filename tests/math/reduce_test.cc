#include "math/reduce/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::kSum,        ReduceOp::kMean,   ReduceOp::kMax,
                             ReduceOp::kMin,        ReduceOp::kL1,     ReduceOp::kL2,
                             ReduceOp::kSumSquares, ReduceOp::kProduct};

double Reference(ReduceOp op, const std::vector<double>& row) {
  double sum = 0, product = 1, max = -HUGE_VAL, min = HUGE_VAL, squares = 0, absolute = 0;
  bool nan = false;
  for (double x : row) {
    sum += x;
    product *= x;
    max = std::fmax(max, x);
    min = std::fmin(min, x);
    squares += x * x;
    absolute += std::fabs(x);
    nan = nan || std::isnan(x);
  }
  switch (op) {
    case ReduceOp::kSum:
      return sum;
    case ReduceOp::kMean:
      return sum / static_cast<double>(row.size());
    case ReduceOp::kMax:
      return nan ? NAN : max;
    case ReduceOp::kMin:
      return nan ? NAN : min;
    case ReduceOp::kSumSquares:
      return squares;
    case ReduceOp::kL1:
      return absolute;
    case ReduceOp::kL2:
      return std::sqrt(squares);
    case ReduceOp::kProduct:
      return product;
  }
  return 0;
}

void Check(ReduceOp op, const Extents& extents, AxisSet axes, const std::vector<Half>& x,
           std::vector<Half>* same_on_all_targets) {
  const Strides strides = DenseStrides(extents);
  const Strides out_strides = DenseStrides(Reduced(extents, axes));
  std::vector<std::vector<double>> rows(Count(Reduced(extents, axes)));
  for (int64_t at = 0; at < static_cast<int64_t>(x.size()); ++at) {
    int64_t out = 0;
    for (int i = 0; i < kRank; ++i) {
      if (!axes.Has(i)) out += at / strides[i] % extents[i] * out_strides[i];
    }
    rows[out].push_back(ToDouble(x[at]));
  }
  std::vector<double> want;
  want.reserve(rows.size());
  for (const auto& row : rows) want.push_back(Reference(op, row));
  std::vector<Half> y(rows.size());
  Reduce(op, extents, axes, x, absl::MakeSpan(y));
  const size_t terms = x.size() / y.size();
  ExpectClose(y, want, 2e-6 * std::sqrt(static_cast<double>(terms + 1)));
  if (same_on_all_targets->empty()) *same_on_all_targets = y;
  ExpectSame(y, *same_on_all_targets);
}

TEST(Reduce, AnySetOfAxes) {
  const Extents extents = {2, 3, 4, 5, 7};
  const std::vector<Half> x = Numbers(Count(extents));
  for (ReduceOp op : kOps) {
    for (int mask = 0; mask < 32; ++mask) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(op) << ", axes " << mask);
      AxisSet axes;
      for (int i = 0; i < kRank; ++i) {
        if (mask >> i & 1) axes.Add(i);
      }
      std::vector<Half> first;
      ForEachSimdTarget([&] { Check(op, extents, axes, x, &first); });
    }
  }
}

TEST(Reduce, EdgeSizesAlongAndAcross) {
  for (ReduceOp op : kOps) {
    SCOPED_TRACE(static_cast<int>(op));
    for (int64_t size : EdgeSizes()) {
      const std::vector<Half> x = Numbers(3 * size);
      std::vector<Half> rows, columns;
      ForEachSimdTarget([&] {
        Check(op, {1, 1, 1, 3, size}, AxisSet({kAxisW}), x, &rows);
        Check(op, {1, 1, 1, 3, size}, AxisSet({kAxisH}), x, &columns);
      });
    }
  }
}

TEST(Reduce, ManyShortRows) {
  for (ReduceOp op : kOps) {
    SCOPED_TRACE(static_cast<int>(op));
    for (int64_t size : {1, 2, 3, 5, 8, 15, 16, 17}) {
      const std::vector<Half> x = Numbers(300 * size);
      std::vector<Half> first;
      ForEachSimdTarget([&] { Check(op, {1, 3, 1, 100, size}, AxisSet({kAxisW}), x, &first); });
    }
  }
}

TEST(Reduce, OneRoundingAtTheEnd) {
  ForEachSimdTarget([] {
    std::vector<Half> y(1);
    const AxisSet axes({kAxisW});
    Reduce(ReduceOp::kSum, {1, 1, 1, 1, 2}, axes, {kHalfMax, ToHalf(6.0f)}, absl::MakeSpan(y));
    EXPECT_EQ(y[0], kHalfMax);
    Reduce(ReduceOp::kSum, {1, 1, 1, 1, 2}, axes, {kHalfMax, ToHalf(32.0f)}, absl::MakeSpan(y));
    EXPECT_EQ(y[0], kHalfInfinity);
    // In fp16, adding 4096 ones one by one would not change the sum.
    std::vector<Half> x(4097, kHalfOne);
    x[0] = ToHalf(4096.0f);
    Reduce(ReduceOp::kSum, {1, 1, 1, 1, 4097}, axes, x, absl::MakeSpan(y));
    EXPECT_EQ(ToFloat(y[0]), 8192.0f);
    Reduce(ReduceOp::kSumSquares, {1, 1, 1, 1, 2}, axes, {ToHalf(255.0f), kHalfZero},
           absl::MakeSpan(y));
    EXPECT_EQ(ToFloat(y[0]), 65024.0f);
  });
}

TEST(Reduce, NanAndInfinity) {
  ForEachSimdTarget([] {
    std::vector<Half> first;
    for (int64_t at = 0; at < 40; at += 13) {
      std::vector<Half> x = Numbers(40);
      x[at] = kHalfNan;
      for (ReduceOp op : kOps) {
        std::vector<Half> y(1);
        Reduce(op, {1, 1, 1, 1, 40}, AxisSet({kAxisW}), x, absl::MakeSpan(y));
        EXPECT_TRUE(IsNan(y[0])) << static_cast<int>(op) << " at " << at;
      }
    }
    std::vector<Half> y(1);
    Reduce(ReduceOp::kMax, {1, 1, 1, 1, 3}, AxisSet({kAxisW}),
           {Half{0xfc00}, Half{0xfc00}, Half{0xfc00}}, absl::MakeSpan(y));
    EXPECT_EQ(y[0].bits, 0xfc00);
  });
}

TEST(Reduce, ThreadsDoNotShow) {
  const Extents extents = {1, 1, 64, 50, 50};
  const std::vector<Half> x = Numbers(Count(extents));
  for (AxisSet axes : {AxisSet({kAxisH, kAxisW}), AxisSet({kAxisC}), AxisSet({kAxisC, kAxisW})}) {
    ExpectThreadsDoNotShow(Count(Reduced(extents, axes)), [&](absl::Span<Half> y) {
      Reduce(ReduceOp::kSum, extents, axes, x, y);
    });
  }
}

}  // namespace
}  // namespace anemone::math
