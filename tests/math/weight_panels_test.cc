// Compressed weights must give the same bits as the same weights in fp16, for every instruction
// set, and take less memory. Products with affine codes as integers are nearer to the exact sums.
#include "math/gemm/weight_panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "math/conv/conv.h"
#include "math/conv/conv_state.h"
#include "math/gemm/gemm.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

#ifdef ABSL_HAVE_ADDRESS_SANITIZER  // nothing is optimized: all rows would take minutes
constexpr int64_t kRowsOfProducts[] = {5, 22};
constexpr bool kAllDepths = false;
#else
constexpr int64_t kRowsOfProducts[] = {1, 5, 8, 22};
constexpr bool kAllDepths = true;
#endif

enum class Form { kInt8, kUInt8, kInt4, kUInt4Blocks, kPalette4, kPalette8, kSparse };
constexpr Form kForms[] = {Form::kInt8,     Form::kUInt8,    Form::kInt4,  Form::kUInt4Blocks,
                           Form::kPalette4, Form::kPalette8, Form::kSparse};
const char* NameOf(Form form) {
  constexpr const char* kNames[] = {"int8",     "uint8",    "int4",  "uint4 in blocks",
                                    "palette4", "palette8", "sparse"};
  return kNames[static_cast<int>(form)];
}

// Random weights in a compressed form, and the Halfs that they represent. Output channels are the
// first axis, or the last if `by_columns`.
struct TestWeights {
  TestWeights(const TestWeights&) = delete;
  std::vector<std::byte> codes;
  std::vector<float> scales, table;
  std::vector<int16_t> zeros;
  CodedWeights coded;
  std::vector<Half> halves;
  std::vector<double> exact;  // kAffine: not rounded

  TestWeights(Form form, int64_t lines, int64_t depth, bool by_columns, int seed,
              int64_t block = 16) {
    const int64_t count = lines * depth;
    std::mt19937 random(seed);
    if (form == Form::kSparse) {
      halves = Numbers(count, seed);
      for (Half& h : halves) {
        if (random() % 4 != 0) h = kHalfZero;
      }
      coded.form = WeightForm::kSparse;
      return;
    }
    const bool palette = form == Form::kPalette4 || form == Form::kPalette8;
    coded.form = palette ? WeightForm::kPalette : WeightForm::kAffine;
    coded.bits = form == Form::kInt8 || form == Form::kUInt8 || form == Form::kPalette8 ? 8 : 4;
    coded.is_signed = form == Form::kInt8 || form == Form::kInt4;
    codes.resize(coded.bits == 8 ? count : (count + 1) / 2);
    for (std::byte& byte : codes) byte = static_cast<std::byte>(random());
    if (palette) {
      for (Half h : Numbers(int64_t{1} << coded.bits, seed)) table.push_back(ToFloat(h));
    } else {
      SetScales(form, lines, depth, by_columns, block, random);
    }
    coded.codes = codes.data();
    coded.scales = scales;
    coded.zero_points = zeros;
    coded.table = table;
    SetElements(count);
  }

  void SetScales(Form form, int64_t lines, int64_t depth, bool by_columns, int64_t of_blocks,
                 std::mt19937& random) {
    const std::vector<int64_t> dims =
        by_columns ? std::vector{depth, lines} : std::vector{lines, depth};
    std::vector<int64_t> scale_dims = {lines};
    int64_t axis = by_columns ? 1 : 0, block = 0;
    if (form == Form::kUInt4Blocks && depth % of_blocks == 0) {
      axis = 1 - axis;
      block = of_blocks;
      scale_dims = dims;
      scale_dims[axis] /= block;
    }
    coded.grid = *ScaleGrid::Of(dims, scale_dims, axis, block);
    int64_t count = 1;
    for (int64_t dim : scale_dims) count *= dim;
    for (int64_t i = 0; i < count; ++i) {
      scales.push_back(static_cast<float>(random() % 1000 + 1) * 0x1.3p-18f);
      if (form != Form::kInt8) zeros.push_back(static_cast<int16_t>(random() % 8));
    }
  }

  void SetScale(int64_t index, float scale) {
    scales[index] = scale;
    SetElements(static_cast<int64_t>(halves.size()));
  }

  void SetElements(int64_t count) {
    halves.clear();
    exact.clear();
    for (int64_t e = 0; e < count; ++e) halves.push_back(ElementOf(e));
  }

  Half ElementOf(int64_t e) {
    int code = static_cast<int>(codes[coded.bits == 8 ? e : e / 2]);
    if (coded.bits == 4) code = code >> e % 2 * 4 & 15;
    if (!table.empty()) return ToHalf(table[code]);
    if (coded.is_signed && code >= 1 << (coded.bits - 1)) code -= 1 << coded.bits;
    const int64_t scale = coded.grid.IndexOf(e);
    const int zero = zeros.empty() ? 0 : zeros[scale];
    exact.push_back(static_cast<double>(code - zero) * scales[scale]);
    return ToHalf(static_cast<float>(code - zero) * scales[scale]);
  }

  const std::function<void(int64_t, absl::Span<Half>)>& reader() const { return read_; }

 private:
  std::function<void(int64_t, absl::Span<Half>)> read_ = [this](int64_t first,
                                                                absl::Span<Half> to) {
    std::copy_n(halves.begin() + first, to.size(), to.begin());
  };
};

// Convolutions of at most this many places are computed from the codes.
constexpr int64_t kFewRows = 8;

// Runs `body` with VNNI, if this machine has it, and without.
void WithAndWithoutVnni(const std::function<void()>& body) {
  body();
  const bool has = SetVnni(false);
  if (has) body();
  SetVnni(has);
}

// The tolerance of an element: half an ulp of the result, for each block of 32 terms at most 2^-15
// of its largest element times each weight, and the error of fp32 sums.
void ExpectNear(const TestWeights& w, MatrixOrder order, int64_t k, int64_t n,
                absl::Span<const Half> a, absl::Span<const Half> got) {
  const MatrixLayout layout = LayoutOf(order, k, n);
  std::vector<double> largest(k);
  for (int64_t e = 0; e < static_cast<int64_t>(got.size()); ++e) {
    const Half* row = a.data() + e / n * k;
    for (int64_t i = 0; e % n == 0 && i < k; i += 32) {
      const int64_t end = std::min(i + 32, k);
      double most = 0;
      for (int64_t j = i; j < end; ++j) most = std::max<double>(most, std::abs(ToFloat(row[j])));
      std::fill(largest.begin() + i, largest.begin() + end, most);
    }
    double want = 0, bound = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double weight = w.exact[i * layout.row + e % n * layout.col];
      want += ToFloat(row[i]) * weight;
      bound += std::abs(weight) * largest[i] * (0x1p-15 + 0x1p-22);
    }
    bound += std::abs(want) * 0x1p-11 + 0x1p-25;
    ASSERT_NEAR(want, ToFloat(got[e]), bound) << "element " << e;
  }
}

std::vector<Half> Product(const PackedMatrix& packed, const GemmShape& shape,
                          absl::Span<const Half> a, const MatrixLayout& layout) {
  std::vector<Half> c(shape.m * shape.n);
  Gemm(shape, a, layout, packed, {}, absl::MakeSpan(c), RowMajor(shape.n));
  return c;
}

void CheckGemm(Form form, int64_t m, int64_t k, int64_t n, MatrixOrder order) {
  SCOPED_TRACE(testing::Message() << NameOf(form) << " " << m << " x " << k << " x " << n
                                  << (order == MatrixOrder::kRowMajor ? " rows" : " columns"));
  const TestWeights w(form, n, k, order == MatrixOrder::kRowMajor, 5);
  const PackedMatrix dense = PackMatrix(k, n, order, w.reader());
  const PackedMatrix packed = PackMatrix(k, n, order, w.reader(), &w.coded);
  if (k >= 64 && n >= 48) {
    EXPECT_LT(packed.bytes() * 4, dense.bytes() * 3);
  }
  std::vector<Half> a = Numbers(m * k, 3);
  const GemmShape shape{.m = m, .k = k, .n = n};
  const std::vector<Half> got = Product(packed, shape, a, RowMajor(k));
  if (!CodesPay({.m = m, .b_panels = &PanelsOf(packed)})) {
    return ExpectSame(got, Product(dense, shape, a, RowMajor(k)));
  }
  ExpectNear(w, order, k, n, a, got);
  // The elements of a row need not be neighbors.
  std::vector<Half> turned(a.size());
  for (int64_t e = 0; e < m * k; ++e) turned[e % k * m + e / k] = a[e];
  ExpectSame(got, Product(packed, shape, turned, ColumnMajor(m)));
  // The bits are those of every instruction set.
  static std::map<std::string, std::vector<Half>> first;
  const std::string key =
      absl::StrCat(NameOf(form), m, " ", k, " ", n, " ", static_cast<int>(order));
  ExpectSame(got, first.try_emplace(key, got).first->second);
  // A row with an element that is not finite is multiplied as floats, the others as before.
  const int64_t row = m / 2;
  a[row * k + k / 2] = kHalfInfinity;
  std::vector<Half> want = got;
  const std::vector<Half> floats = Product(dense, shape, a, RowMajor(k));
  std::copy_n(floats.begin() + row * n, n, want.begin() + row * n);
  ExpectSame(Product(packed, shape, a, RowMajor(k)), want);
}

TEST(WeightPanelsTest, ProductsAreThoseOfTheFoldedWeight) {
  ForEachSimdTarget([] {
    WithAndWithoutVnni([] {
      for (Form form : kForms) {
        for (MatrixOrder order : {MatrixOrder::kRowMajor, MatrixOrder::kColumnMajor}) {
          for (int64_t m : kRowsOfProducts) {
            // More than one pass over the depth.
            if (m == 5 || kAllDepths) CheckGemm(form, m, 800, 100, order);
            CheckGemm(form, m, 64, 48, order);
            CheckGemm(form, m, 7, 3, order);
          }
        }
      }
    });
  });
}

// Integers just below a power of two, whose upper byte would be 128, get one bit less.
TEST(WeightPanelsTest, LargestElementsFitTheirBytes) {
  constexpr int64_t kTerms = 64, kColumns = 48;
  ForEachSimdTarget([] {
    WithAndWithoutVnni([] {
      for (Form form : {Form::kInt8, Form::kUInt8, Form::kInt4, Form::kUInt4Blocks}) {
        const TestWeights w(form, kColumns, kTerms, false, 6);
        const PackedMatrix packed =
            PackMatrix(kTerms, kColumns, MatrixOrder::kColumnMajor, w.reader(), &w.coded);
        for (uint16_t bits : {0x3ff7, 0x3ff8, 0x3fff, 0xbff7, 0xbff8, 0xbfff, 0x5bff, 0x0001}) {
          const std::vector<Half> a(kTerms, Half{bits});
          ExpectNear(w, MatrixOrder::kColumnMajor, kTerms, kColumns, a,
                     Product(packed, {.m = 1, .k = kTerms, .n = kColumns}, a, RowMajor(kTerms)));
        }
      }
    });
  });
}

// A row has the same bits alone and among many, with one thread and with several.
TEST(WeightPanelsTest, RowsDoNotDependOnEachOther) {
  constexpr int64_t kRows = 300, kTerms = 800, kColumns = 400;
  const TestWeights w(Form::kUInt4Blocks, kColumns, kTerms, false, 8, 32);
  const MatrixOrder order = MatrixOrder::kColumnMajor;
  const PackedMatrix packed = PackMatrix(kTerms, kColumns, order, w.reader(), &w.coded);
  if (!CodesPay({.m = kRows, .b_panels = &PanelsOf(packed)})) GTEST_SKIP();
  std::vector<Half> a = Numbers(kRows * kTerms, 3);
  a[100 * kTerms] = kHalfInfinity;
  std::vector<Half> want;
  for (int64_t row = 0; row < kRows; ++row) {
    const std::vector<Half> one =
        Product(packed, {.m = 1, .k = kTerms, .n = kColumns},
                absl::MakeConstSpan(a).subspan(row * kTerms, kTerms), RowMajor(kTerms));
    want.insert(want.end(), one.begin(), one.end());
  }
  for (int threads : {1, 3}) {
    WithThreads(threads, [&] {
      ExpectSame(Product(packed, {.m = kRows, .k = kTerms, .n = kColumns}, a, RowMajor(kTerms)),
                 want);
    });
  }
}

// Codes are expanded if words have codes of two blocks, or if a weight is not finite in fp16.
TEST(WeightPanelsTest, OtherCodesAreExpanded) {
  constexpr int64_t kTerms = 48, kColumns = 50;
  const std::vector<Half> a = Numbers(kTerms, 3);
  const GemmShape shape{.m = 1, .k = kTerms, .n = kColumns};
  ForEachSimdTarget([&] {
    for (int64_t block : {12, 16}) {
      TestWeights w(Form::kUInt4Blocks, kColumns, kTerms, false, 4, block);
      if (block == 16) w.SetScale(3, 30000.0f);
      const MatrixOrder order = MatrixOrder::kColumnMajor;
      const PackedMatrix packed = PackMatrix(kTerms, kColumns, order, w.reader(), &w.coded);
      EXPECT_LT(packed.bytes(), kTerms * 2 * kPanelColumns * 2);
      ExpectSame(
          Product(packed, shape, a, RowMajor(kTerms)),
          Product(PackMatrix(kTerms, kColumns, order, w.reader()), shape, a, RowMajor(kTerms)));
    }
  });
}

void CheckConv(Form form, const ConvShape& shape) {
  SCOPED_TRACE(testing::Message() << NameOf(form) << " " << shape.in_channels << " -> "
                                  << shape.out_channels << ", " << shape.in_h << " x " << shape.in_w
                                  << ", " << shape.groups << " groups");
  const int64_t depth =
      shape.in_channels / shape.groups * shape.window.kernel_h * shape.window.kernel_w;
  const TestWeights w(form, shape.out_channels, depth, false, 9);
  const PackedConv dense = PackConv(shape, w.reader(), {});
  const PackedConv packed = PackConv(shape, w.reader(), {}, &w.coded);
  const std::vector<Half> x = Numbers(shape.in_channels * shape.in_h * shape.in_w, 3);
  std::vector<Half> want(shape.out_channels * shape.out_h() * shape.out_w()), got(want.size());
  Conv(dense, x, absl::MakeSpan(want));
  Conv(packed, x, absl::MakeSpan(got));
  if (shape.out_h() * shape.out_w() > kFewRows || form > Form::kUInt4Blocks || shape.groups > 1) {
    ExpectSame(got, want);
  } else {  // a product of few rows; weights are rounded in one of the two
    float largest = 0;
    for (Half y : want) largest = std::max(largest, std::abs(ToFloat(y)));
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(ToFloat(got[i]), ToFloat(want[i]), largest * 0x1p-9f) << "element " << i;
    }
  }
  if (depth * shape.out_channels >= 1000) {  // larger than a table
    EXPECT_LT(packed.bytes(), dense.bytes());
  }
}

TEST(WeightPanelsTest, Large3x3ConvolutionsOfBytesAreThoseOfDenseWeights) {
  const ConvShape shape{.in_channels = 32,
                        .in_h = 24,
                        .in_w = 24,
                        .out_channels = 64,
                        .window = {.kernel_h = 3,
                                   .kernel_w = 3,
                                   .pad_top = 1,
                                   .pad_left = 1,
                                   .pad_bottom = 1,
                                   .pad_right = 1}};
  for (Form form : {Form::kInt8, Form::kUInt8, Form::kPalette8}) {
    SCOPED_TRACE(NameOf(form));
    const TestWeights w(form, shape.out_channels, shape.in_channels * 9, false, 9);
    const PackedConv dense = PackConv(shape, w.reader(), {});
    const PackedConv packed = PackConv(shape, w.reader(), {}, &w.coded);
    EXPECT_EQ(packed.state().weights->kind, ConvKind::kWinograd);
    const std::vector<Half> x = Numbers(shape.in_channels * shape.in_h * shape.in_w, 3);
    std::vector<Half> want(shape.out_channels * shape.out_h() * shape.out_w()), got(want.size());
    Conv(dense, x, absl::MakeSpan(want));
    Conv(packed, x, absl::MakeSpan(got));
    ExpectSame(got, want);
  }
}

TEST(WeightPanelsTest, ConvolutionsAreThoseOfTheFoldedWeight) {
  const Window same{.kernel_h = 3,
                    .kernel_w = 3,
                    .stride_w = 2,
                    .pad_top = 1,
                    .pad_left = 1,
                    .pad_bottom = 1,
                    .pad_right = 1};
  ForEachSimdTarget([&] {
    for (Form form : kForms) {
      CheckConv(form,
                {.in_channels = 16, .in_h = 12, .in_w = 9, .out_channels = 10, .window = same});
      CheckConv(form,
                {.in_channels = 64, .in_h = 3, .in_w = 2, .out_channels = 50, .window = same});
      CheckConv(form,
                {.in_channels = 48, .in_h = 7, .in_w = 7, .out_channels = 100, .window = same});
      CheckConv(form, {.in_channels = 64, .in_h = 20, .in_w = 5, .out_channels = 13});
      CheckConv(form, {.in_channels = 32,
                       .in_h = 8,
                       .in_w = 9,
                       .out_channels = 14,
                       .groups = 2,
                       .window = same});
      CheckConv(
          form,
          {.in_channels = 8, .in_h = 8, .in_w = 9, .out_channels = 8, .groups = 8, .window = same});
    }
  });
}

// If scales change from term to term, the weight is expanded to fp16.
TEST(WeightPanelsTest, ScalesAlongTheDepthAreFolded) {
  TestWeights w(Form::kInt8, 96, 64, false, 2);
  const PackedMatrix folded = PackMatrix(96, 64, MatrixOrder::kRowMajor, w.reader(), &w.coded);
  EXPECT_EQ(PackMatrix(96, 64, MatrixOrder::kRowMajor, w.reader()).bytes(), folded.bytes());
}

TEST(ScaleGridTest, RunsShareAScale) {
  // Compares with a slow search, for every line and run.
  const std::vector<std::vector<int64_t>> shapes = {{6, 32}, {32, 6}, {4, 8, 3, 3}, {2, 48, 5}};
  for (const auto& dims : shapes) {
    int64_t elements = 1;
    for (int64_t d : dims) elements *= d;
    for (int64_t axis = 0; axis < static_cast<int64_t>(dims.size()); ++axis) {
      for (int64_t block : {0, 2, 4, 5}) {
        std::vector<int64_t> scales = {dims[axis]};
        if (block > dims[axis]) continue;
        if (block > 0) {
          scales = dims;
          scales[axis] = (dims[axis] + block - 1) / block;
        }
        const auto grid = ScaleGrid::Of(dims, scales, axis, block);
        ASSERT_TRUE(grid.ok()) << grid.status();
        for (const bool columns : {false, true}) {
          const int64_t lines = columns ? dims.back() : dims[0];
          const int64_t depth = elements / lines;
          const int64_t step = columns ? lines : 1;
          const int64_t run = grid->SharedRun(step, depth);
          ASSERT_EQ(0, depth % run);
          for (int64_t j = 0; j < lines; ++j) {
            const int64_t first = columns ? j : j * depth;
            for (int64_t k = 0; k < depth; ++k) {
              ASSERT_EQ(grid->IndexOf(first + k / run * run * step),
                        grid->IndexOf(first + k * step))
                  << axis << " " << block << " " << columns;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace anemone::math
