// Products of codes of 8 bits must be the exact sums, scaled once: those of any other arithmetic
// differ in some bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "math/gemm/gemm.h"
#include "math/gemm/gemm_operands.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// Codes of which every third is at an end.
std::vector<int> Codes(int64_t count, int seed) {
  std::mt19937 random(seed);
  std::vector<int> codes(count);
  for (int& code : codes) {
    const auto number = static_cast<int>(random() % 768);
    code = number < 256 ? number : number % 2 * 255;
  }
  return codes;
}

std::vector<Half> ValuesOf(const CodeGrid& grid, const std::vector<int>& codes) {
  std::vector<Half> values;
  values.reserve(codes.size());
  for (const int code : codes) {
    values.push_back(ToHalf(grid.scale * static_cast<float>(grid.low + code)));
  }
  return values;
}

// 8-bit weights of `lines` output channels, stored one after the other.
struct ByteWeights {
  ByteWeights(int64_t lines, int64_t depth, bool is_signed, bool has_zeros, int seed)
      : codes(Codes(lines * depth, seed)) {
    const int low = is_signed ? -128 : 0;
    for (int& code : codes) {
      code += low;
      bytes.push_back(static_cast<std::byte>(code));
    }
    for (int64_t i = 0; i < lines; ++i) {
      scales.push_back(0.0037f + 0.0001f * static_cast<float>(i));
      zeros.push_back(has_zeros ? static_cast<int16_t>(low + i * 51 % 256) : int16_t{0});
    }
    coded = {.form = WeightForm::kAffine,
             .is_signed = is_signed,
             .codes = bytes.data(),
             .grid = *ScaleGrid::Of({lines, depth}, {lines}, 0, 0),
             .scales = scales};
    if (has_zeros) coded.zero_points = zeros;
    for (int64_t i = 0; i < lines * depth; ++i) {
      halves.push_back(ToHalf(static_cast<float>(codes[i] - zeros[i / depth]) * scales[i / depth]));
    }
  }
  ByteWeights(const ByteWeights&) = delete;

  auto reader() const {
    return [this](int64_t first, absl::Span<Half> to) {
      std::copy_n(halves.data() + first, to.size(), to.data());
    };
  }

  std::vector<int> codes;
  std::vector<std::byte> bytes;
  std::vector<float> scales;
  std::vector<int16_t> zeros;
  std::vector<Half> halves;
  CodedWeights coded;
};

constexpr CodeGrid kGrids[] = {{0.0123f, -128}, {0.0123f, 0}, {0.0123f, -255}, {0.0371f, -31}};

void CheckWeights(const CodeGrid& grid, const GemmShape& s, bool is_signed, bool has_zeros) {
  SCOPED_TRACE(testing::Message() << s.m << " x " << s.k << " x " << s.n << ", from " << grid.low);
  const std::vector<int> codes = Codes(s.m * s.k, 1);
  const ByteWeights w(s.n, s.k, is_signed, has_zeros, 2);
  const std::vector<float> bias = Floats(s.n, 3);
  std::vector<Half> want, got(s.m * s.n);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      int sum = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        sum += (grid.low + codes[i * s.k + k]) * (w.codes[j * s.k + k] - w.zeros[j]);
      }
      want.push_back(ToHalf(static_cast<float>(sum) * (w.scales[j] * grid.scale) + bias[j]));
    }
  }
  const PackedMatrix b = PackMatrix(s.k, s.n, MatrixOrder::kColumnMajor, w.reader(), &w.coded);
  Gemm(s, ValuesOf(grid, codes), RowMajor(s.k), b, bias, absl::MakeSpan(got), RowMajor(s.n), {},
       &grid);
  ExpectSame(got, want);
}

TEST(ByteProductsTest, OfPackedCodesAreExactSums) {
  if (!MultipliesBytes()) GTEST_SKIP() << "the processor has no instruction for it";
  for (const CodeGrid& grid : kGrids) {
    for (const bool is_signed : {false, true}) {
      for (const bool has_zeros : {false, true}) {
        for (const int64_t m : {1, 3, 8, 22}) {
          for (const int64_t n : {1, 16, 17, 40, 48, 50, 100}) {
            for (const int64_t k : {1, 7, 64, 130}) {
              CheckWeights(grid, {.m = m, .k = k, .n = n}, is_signed, has_zeros);
            }
          }
        }
      }
    }
  }
}

TEST(ByteProductsTest, SumsOfTheMostTermsDoNotOverflow) {
  if (!MultipliesBytes()) GTEST_SKIP() << "the processor has no instruction for it";
  const int64_t k = kMostByteTerms;
  for (const int low : {0, -255}) {
    const CodeGrid grid = {0x1p-14f, low};
    ByteWeights w(1, k, false, false, 1);
    std::fill(w.bytes.begin(), w.bytes.end(), std::byte{255});
    w.scales[0] = 0x1p-10f;
    const PackedMatrix b = PackMatrix(k, 1, MatrixOrder::kColumnMajor, w.reader(), &w.coded);
    std::vector<Half> got(1);
    Gemm({.m = 1, .k = k, .n = 1}, ValuesOf(grid, std::vector<int>(k, low == 0 ? 255 : 0)),
         RowMajor(k), b, {}, absl::MakeSpan(got), RowMajor(1), {}, &grid);
    const float sum = static_cast<float>(low == 0 ? 255 : low) * 255.0f * static_cast<float>(k);
    EXPECT_EQ(got[0], ToHalf(sum * 0x1p-24f));
  }
}

TEST(ByteProductsTest, OfTwoOperandsOnGridsAreExactSums) {
  if (!MultipliesBytes()) GTEST_SKIP() << "the processor has no instruction for it";
  for (const CodeGrid& a_grid : kGrids) {
    for (const CodeGrid& b_grid : kGrids) {
      for (const int64_t m : {9, 23}) {
        for (const int64_t n : {1, 16, 50}) {
          for (const int64_t k : {1, 6, 64, 67}) {
            const GemmShape s{.m = m, .k = k, .n = n, .batch = {1, 1, 2}};
            const std::vector<int> a = Codes(2 * m * k, 1), b = Codes(2 * k * n, 2);
            std::vector<Half> want, got(2 * m * n);
            for (int64_t i = 0; i < 2 * m; ++i) {
              for (int64_t j = 0; j < n; ++j) {
                int sum = 0;
                for (int64_t t = 0; t < k; ++t) {
                  sum += (a_grid.low + a[i * k + t]) * (b_grid.low + b[(i / m * k + t) * n + j]);
                }
                want.push_back(ToHalf(static_cast<float>(sum) * (b_grid.scale * a_grid.scale)));
              }
            }
            Gemm(s, ValuesOf(a_grid, a), RowMajor(k, m), ValuesOf(b_grid, b), RowMajor(n, k), {},
                 absl::MakeSpan(got), RowMajor(n, m), {}, {&a_grid, &b_grid});
            ExpectSame(got, want);
          }
        }
      }
    }
  }
}

TEST(ByteProductsTest, ThreadsDoNotChangeTheResult) {
  const GemmShape s{.m = 300, .k = 200, .n = 250};
  const ByteWeights w(s.n, s.k, true, false, 2);
  const PackedMatrix b = PackMatrix(s.k, s.n, MatrixOrder::kColumnMajor, w.reader(), &w.coded);
  const std::vector<Half> a = ValuesOf(kGrids[0], Codes(s.m * s.k, 1));
  std::vector<std::vector<Half>> results;
  for (const int threads : {1, 3}) {
    WithThreads(threads, [&] {
      std::vector<Half>& c = results.emplace_back(s.m * s.n);
      Gemm(s, a, RowMajor(s.k), b, {}, absl::MakeSpan(c), RowMajor(s.n), {}, &kGrids[0]);
    });
  }
  ExpectSame(results[1], results[0]);
}

}  // namespace
}  // namespace anemone::math
