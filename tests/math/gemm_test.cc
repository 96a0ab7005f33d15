#include "math/gemm/gemm.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// The definition of gemm.h: fp32 sums in the order of k.
std::vector<Half> Reference(const GemmShape& s, const std::vector<Half>& a, const MatrixLayout& la,
                            const std::vector<Half>& b, const MatrixLayout& lb,
                            const std::vector<float>& bias, int64_t c_size, const MatrixLayout& lc,
                            bool relu) {
  std::vector<Half> c(c_size);
  for (int64_t x = 0; x < s.batch[0]; ++x) {
    for (int64_t y = 0; y < s.batch[1]; ++y) {
      for (int64_t z = 0; z < s.batch[2]; ++z) {
        const auto at = [&](const MatrixLayout& l, int64_t i, int64_t j) {
          return x * l.batch[0] + y * l.batch[1] + z * l.batch[2] + i * l.row + j * l.col;
        };
        for (int64_t i = 0; i < s.m; ++i) {
          for (int64_t j = 0; j < s.n; ++j) {
            // One column is the sum of partial sums, which are added as a tree.
            float sums[32] = {};
            const bool one_column = s.n == 1 && la.col == 1;
            for (int64_t k = 0; k < s.k; ++k) {
              sums[one_column ? k % 32 : 0] += ToFloat(a[at(la, i, k)]) * ToFloat(b[at(lb, k, j)]);
            }
            for (int64_t half = 16; one_column && half > 0; half /= 2) {
              for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
            }
            float sum = sums[0];
            if (!bias.empty()) sum += bias[j];
            const Half rounded = ToHalf(sum);
            c[at(lc, i, j)] = relu && ToFloat(rounded) < 0 ? kHalfZero : rounded;
          }
        }
      }
    }
  }
  return c;
}

void CheckProduct(int64_t m, int64_t k, int64_t n, Contents contents = Contents::kNormal) {
  SCOPED_TRACE(testing::Message() << m << " x " << k << " x " << n);
  const GemmShape shape{.m = m, .k = k, .n = n};
  const std::vector<Half> a = Numbers(m * k, 1, contents), b = Numbers(k * n, 2, contents);
  const std::vector<float> bias = Floats(n, 3);
  const auto check = [&](const MatrixLayout& la, const MatrixLayout& lb, const MatrixLayout& lc) {
    const std::vector<Half> want = Reference(shape, a, la, b, lb, bias, m * n, lc, /*relu=*/true);
    std::vector<Half> c(m * n);
    WithRelu(c, [&](const Epilogue& relu) {
      Gemm(shape, a, la, b, lb, bias, absl::MakeSpan(c), lc, relu);
    });
    ExpectSame(c, want);
    const bool row_major = lb.col == 1;
    const PackedMatrix packed =
        PackMatrix(k, n, row_major ? MatrixOrder::kRowMajor : MatrixOrder::kColumnMajor, b);
    std::vector<Half> d(m * n);
    WithRelu(d, [&](const Epilogue& relu) {
      Gemm(shape, a, la, packed, bias, absl::MakeSpan(d), lc, relu);
    });
    ExpectSame(d, want);
  };
  check(RowMajor(k), {n, 1, {}}, RowMajor(n));
  check(RowMajor(k), {1, k, {}}, {1, m, {}});
  check(ColumnMajor(m), {n, 1, {}}, {1, m, {}});
}

TEST(Gemm, EdgeSizes) {
  ForEachSimdTarget([] {
    for (int64_t m : {1, 3, 4, 5, 8, 9, 17}) {
      for (int64_t n : {1, 15, 16, 17, 33, 47, 48, 49, 100}) CheckProduct(m, 19, n);
    }
    for (int64_t k : {1, 2, 15, 16, 17, 50, 383, 384, 385, 1000}) {
      CheckProduct(1, k, 50);
      CheckProduct(11, k, 50);
      CheckProduct(11, k, 1);
    }
  });
}

TEST(Gemm, LargerThanEveryBlock) {
  ForEachSimdTarget([] {
    CheckProduct(300, 40, 250);
    CheckProduct(300, 700, 1);
  });
}

TEST(Gemm, SubnormalsLargeAndSpecialNumbers) {
  ForEachSimdTarget([] {
    for (Contents contents : {Contents::kSubnormal, Contents::kLarge, Contents::kSpecial})
      for (int64_t n : {1, 21}) CheckProduct(5, 37, n, contents);
  });
}

TEST(Gemm, EmptyDepthGivesTheBias) {
  ForEachSimdTarget([] {
    CheckProduct(3, 0, 20);
    CheckProduct(20, 0, 60);
  });
}

TEST(Gemm, BatchesWithBroadcast) {
  const GemmShape shape{.m = 5, .k = 7, .n = 20, .batch = {2, 3, 2}};
  const MatrixLayout la{7, 1, {3 * 35, 35, 0}};     // repeated over the last batch axis
  const MatrixLayout lb{20, 1, {0, 2 * 140, 140}};  // repeated over the first
  const MatrixLayout lc{20, 1, {600, 200, 100}};
  const std::vector<Half> a = Numbers(6 * 35, 1), b = Numbers(6 * 140, 2);
  const std::vector<Half> want = Reference(shape, a, la, b, lb, {}, 1200, lc, {});
  ForEachSimdTarget([&] {
    std::vector<Half> c(1200);
    Gemm(shape, a, la, b, lb, {}, absl::MakeSpan(c), lc);
    ExpectSame(c, want);
  });
}

// The layout of attention: the heads are interleaved between the rows of operands and result.
TEST(Gemm, StridedRowsAndColumns) {
  constexpr int64_t kHeads = 3, kRows = 10, kDim = 6;
  const GemmShape shape{.m = kRows, .k = kDim, .n = kRows, .batch = {1, 1, kHeads}};
  const MatrixLayout rows{kHeads * kDim, 1, {0, 0, kDim}};
  const MatrixLayout columns{1, kHeads * kDim, {0, 0, kDim}};
  const MatrixLayout out{kHeads * kRows * 2, 2, {0, 0, kRows * 2}};
  const std::vector<Half> q = Numbers(kRows * kHeads * kDim, 1);
  const std::vector<Half> k = Numbers(kRows * kHeads * kDim, 2);
  const int64_t size = kRows * kHeads * kRows * 2;
  const std::vector<Half> want = Reference(shape, q, rows, k, columns, {}, size, out, {});
  ForEachSimdTarget([&] {
    std::vector<Half> c(size);
    Gemm(shape, q, rows, k, columns, {}, absl::MakeSpan(c), out);
    ExpectSame(c, want);
  });
}

TEST(Gemm, PackedFromFloatsIsRoundedFirst) {
  std::vector<float> b = {1.0f + 0x1p-12f, 0.1f, -0.3f, 1e6f};
  const PackedMatrix packed = PackMatrix(1, 4, MatrixOrder::kRowMajor, b);
  const std::vector<Half> a = {kHalfOne};
  std::vector<Half> c(4);
  Gemm({.m = 1, .k = 1, .n = 4}, a, RowMajor(1), packed, {}, absl::MakeSpan(c), RowMajor(4));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(c[i], ToHalf(b[i]));
  EXPECT_EQ(packed.bytes(), 48 * 2);
}

TEST(Gemm, ThreadsDoNotShow) {
  const GemmShape shape{.m = 70, .k = 500, .n = 300};
  const std::vector<Half> a = Numbers(70 * 500, 1), b = Numbers(500 * 300, 2);
  ExpectThreadsDoNotShow(70 * 300, [&](absl::Span<Half> c) {
    Gemm(shape, a, RowMajor(500), b, RowMajor(300), {}, c, RowMajor(300));
  });
}

}  // namespace
}  // namespace anemone::math
