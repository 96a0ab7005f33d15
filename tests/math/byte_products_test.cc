// Products of codes of 8 bits must be the exact sums, scaled once: those of any other arithmetic
// differ in some bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "math/conv/conv.h"
#include "math/conv/conv_state.h"
#include "math/gemm/coded_weights.h"
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
       grid);
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
         RowMajor(k), b, {}, absl::MakeSpan(got), RowMajor(1), {}, grid);
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
                 absl::MakeSpan(got), RowMajor(n, m), {}, {a_grid, b_grid});
            ExpectSame(got, want);
          }
        }
      }
    }
  }
}

void CheckConv(const CodeGrid& grid, const ConvShape& s, bool is_signed, bool has_zeros) {
  const Window& v = s.window;
  SCOPED_TRACE(testing::Message() << s.in_channels << " -> " << s.out_channels << ", " << s.in_h
                                  << " x " << s.in_w << ", kernel " << v.kernel_h << " x "
                                  << v.kernel_w << ", from " << grid.low);
  const int64_t taps = v.kernel_h * v.kernel_w, group_in = s.in_channels / s.groups;
  const int64_t depth = group_in * taps;
  const std::vector<int> codes = Codes(s.batch * s.in_channels * s.in_h * s.in_w, 1);
  const ByteWeights w(s.out_channels, depth, is_signed, has_zeros, 2);
  const std::vector<float> bias = Floats(s.out_channels, 3);
  std::vector<Half> want;
  for (int64_t at = 0; at < s.batch * s.out_channels * s.out_h() * s.out_w(); ++at) {
    const int64_t j = at % s.out_w(), i = at / s.out_w() % s.out_h();
    const int64_t map = at / s.out_w() / s.out_h(), o = map % s.out_channels;
    int sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t y = i * v.stride_h - v.pad_top + k % taps / v.kernel_w * v.dilation_h;
      const int64_t x = j * v.stride_w - v.pad_left + k % v.kernel_w * v.dilation_w;
      if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) continue;
      const int64_t group = o / (s.out_channels / s.groups);
      const int64_t plane = map / s.out_channels * s.in_channels + group * group_in + k / taps;
      sum += (grid.low + codes[(plane * s.in_h + y) * s.in_w + x]) *
             (w.codes[o * depth + k] - w.zeros[o]);
    }
    want.push_back(ToHalf(static_cast<float>(sum) * (grid.scale * w.scales[o]) + bias[o]));
  }
  const PackedConv conv = PackConv(s, w.reader(), bias, &w.coded, {}, grid);
  EXPECT_EQ(conv.state().weights->kind,
            s.out_h() * s.out_w() > 8 ? ConvKind::kBytes : ConvKind::kMatrix);
  // The epilogue gets every element once.
  const auto negate = [](Half* first, int64_t runs, int64_t count, int64_t step) {
    for (int64_t i = 0; i < runs * count; ++i) first[i / count * step + i % count].bits ^= 0x8000;
  };
  for (Half& y : want) y.bits ^= 0x8000;
  std::vector<Half> got(want.size());
  Conv(conv, ValuesOf(grid, codes), absl::MakeSpan(got), Epilogue(negate));
  ExpectSame(got, want);
}

TEST(ByteProductsTest, ConvolutionsAreExactSums) {
  if (!MultipliesBytes()) GTEST_SKIP() << "the processor has no instruction for it";
  const Window same{
      .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  Window halving = same, dilated = same;
  halving.stride_h = halving.stride_w = 2;
  dilated.dilation_h = dilated.dilation_w = 2;
  const Window inside{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2};
  const Window row{.kernel_w = 3, .stride_w = 2, .pad_left = 1, .pad_right = 1};
  const Window sparse{.stride_h = 2, .stride_w = 2};
  const Window thirds{.kernel_w = 4, .stride_w = 3, .pad_right = 2};
  for (const CodeGrid& grid : kGrids) {
    for (const bool is_signed : {false, true}) {
      for (const bool has_zeros : {false, true}) {
        const auto check = [&](const ConvShape& shape) {
          CheckConv(grid, shape, is_signed, has_zeros);
        };
        check({.in_channels = 5, .in_h = 9, .in_w = 11, .out_channels = 9, .window = same});
        check({.in_channels = 8, .in_h = 9, .in_w = 50, .out_channels = 17, .window = halving});
        check({.in_channels = 3, .in_h = 9, .in_w = 71, .out_channels = 9, .window = inside});
        check({.in_channels = 4, .in_h = 9, .in_w = 11, .out_channels = 77, .window = same});
        check({.in_channels = 7, .in_h = 12, .in_w = 9, .out_channels = 4, .window = dilated});
        check({.in_channels = 2, .in_h = 9, .in_w = 11, .out_channels = 9, .window = same});
        check({.batch = 2,
               .in_channels = 6,
               .in_h = 1,
               .in_w = 801,
               .out_channels = 3,
               .window = row});
        check({.in_channels = 4, .in_h = 10, .in_w = 10, .out_channels = 8, .window = sparse});
        check({.in_channels = 3, .in_h = 4, .in_w = 40, .out_channels = 8, .window = thirds});
        check({.in_channels = 12, .in_h = 6, .in_w = 7, .out_channels = 10});
        check({.batch = 2,
               .in_channels = 12,
               .in_h = 7,
               .in_w = 9,
               .out_channels = 27,
               .groups = 3,
               .window = same});
        // The last vector of positions has one, and four.
        check({.in_channels = 258, .in_h = 7, .in_w = 7, .out_channels = 15});
        check({.in_channels = 32, .in_h = 6, .in_w = 6, .out_channels = 9, .window = same});
        check({.in_channels = 257, .in_h = 1, .in_w = 17, .out_channels = 2});
        check({.batch = 2,
               .in_channels = 12,
               .in_h = 2,
               .in_w = 3,
               .out_channels = 10,
               .window = same});
      }
    }
  }
}

TEST(ByteProductsTest, OtherConvolutionsAreNotOfBytes) {
  const CodeGrid grid = kGrids[0];
  const auto kind = [&](const ConvShape& shape, std::optional<CodeGrid> of_input) {
    const ByteWeights w(shape.out_channels, shape.in_channels / shape.groups, true, false, 2);
    return PackConv(shape, w.reader(), {}, &w.coded, {}, of_input).state().weights->kind;
  };
  ConvShape shape{.in_channels = 8, .in_h = 6, .in_w = 7, .out_channels = 8};
  EXPECT_NE(kind(shape, std::nullopt), ConvKind::kBytes);
  shape.groups = 2;
  EXPECT_NE(kind(shape, grid), ConvKind::kBytes);
  shape = {.in_channels = 1, .in_h = 6, .in_w = 7, .out_channels = 8};
  EXPECT_NE(kind(shape, grid), ConvKind::kBytes);
}

TEST(ByteProductsTest, ThreadsDoNotChangeTheResult) {
  const GemmShape s{.m = 300, .k = 200, .n = 250};
  const ByteWeights w(s.n, s.k, true, false, 2);
  const PackedMatrix b = PackMatrix(s.k, s.n, MatrixOrder::kColumnMajor, w.reader(), &w.coded);
  const std::vector<Half> a = ValuesOf(kGrids[0], Codes(s.m * s.k, 1));
  ExpectThreadsDoNotShow(s.m * s.n, [&](absl::Span<Half> c) {
    Gemm(s, a, RowMajor(s.k), b, {}, c, RowMajor(s.n), {}, kGrids[0]);
  });
}

TEST(ByteProductsTest, ThreadsDoNotChangeConvolutions) {
  const ConvShape s{.in_channels = 16,
                    .in_h = 20,
                    .in_w = 30,
                    .out_channels = 40,
                    .window = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1}};
  const ByteWeights w(s.out_channels, s.in_channels * 9, true, false, 2);
  const PackedConv conv = PackConv(s, w.reader(), {}, &w.coded, {}, kGrids[0]);
  const std::vector<Half> x = ValuesOf(kGrids[0], Codes(s.in_channels * s.in_h * s.in_w, 1));
  ExpectThreadsDoNotShow(s.out_channels * s.out_h() * s.out_w(),
                         [&](absl::Span<Half> y) { Conv(conv, x, y); });
}

}  // namespace
}  // namespace anemone::math
