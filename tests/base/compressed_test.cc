#include "anemone/compressed.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace anemone {
namespace {

std::vector<float> ValuesOf(const Compressed& matrix, int64_t elements) {
  std::vector<float> values(elements);
  matrix.Read(0, absl::MakeSpan(values));
  return values;
}

// Codes of 4 bits are two to a byte: sizes that are odd, even, and beyond a square of the copy.
TEST(Compressed, TransposesCodes) {
  struct Size {
    int64_t rows, columns;
  };
  for (const DataType type :
       {DataType::kInt4, DataType::kUInt4, DataType::kInt8, DataType::kUInt8}) {
    for (const auto [rows, columns] :
         {Size{1, 1}, {2, 2}, {6, 4}, {7, 4}, {6, 5}, {9, 13}, {130, 66}}) {
      const int64_t elements = rows * columns;
      const bool packed = type == DataType::kInt4 || type == DataType::kUInt4;
      std::vector<uint8_t> bytes(packed ? (elements + 1) / 2 : elements);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 + i / 7);
      const Tensor codes = Tensor::Of<uint8_t>(type, {rows, columns}, bytes);
      const auto matrix = Compressed::Affine(codes, Tensor::Floats({1}, std::vector<float>{0.5f}),
                                             Tensor(), ScaleGrid::OfTensor(elements));
      ASSERT_TRUE(matrix.ok()) << matrix.status();
      const std::vector<float> before = ValuesOf(**matrix, elements);
      const Compressed::Ptr transposed = (*matrix)->Transposed(rows, columns);
      ASSERT_NE(transposed, nullptr);
      const std::vector<float> after = ValuesOf(*transposed, elements);
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(after[j * rows + i], before[i * columns + j])
              << DataTypeName(type) << " " << rows << "x" << columns << " at " << i << ", " << j;
        }
      }
    }
  }
}

// 6 rows of 4 columns of int8 codes. The scales are those of rows, of columns or one for all.
TEST(Compressed, PartsShareTheCodes) {
  std::vector<uint8_t> bytes(24);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37);
  const Tensor codes = Tensor::Of<uint8_t>(DataType::kInt8, {6, 4}, bytes);
  const auto matrix = [&](const ScaleGrid& grid, size_t scales, bool has_zeros) {
    std::vector<float> factors(scales);
    std::vector<uint8_t> zeros(scales);
    for (size_t i = 0; i < scales; ++i) {
      factors[i] = static_cast<float>(i + 1) / 8;
      zeros[i] = has_zeros && i != 2 ? static_cast<uint8_t>(i + 3) : 0;
    }
    const std::vector<int64_t> dims = {static_cast<int64_t>(scales)};
    return *Compressed::Affine(codes, Tensor::Floats(dims, factors),
                               Tensor::Of<uint8_t>(DataType::kInt8, dims, zeros), grid);
  };
  struct Range {
    int64_t first, count;
  };
  const auto check = [&](const Compressed& all, Range range, size_t scales) {
    const Compressed::Ptr part = all.Part(range.first, range.count);
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(part->elements(), range.count);
    EXPECT_EQ(part->scales().size(), scales);
    EXPECT_EQ(part->codes().bytes().data(), all.codes().bytes().data() + range.first);
    std::vector<float> want(range.count);
    all.Read(range.first, absl::MakeSpan(want));
    EXPECT_EQ(ValuesOf(*part, range.count), want);
  };
  for (const bool has_zeros : {false, true}) {
    const Compressed::Ptr by_row = matrix({6, 4, 1, 0, 1, 0}, 6, has_zeros);
    check(*by_row, {8, 12}, 3);
    check(*by_row, {0, 24}, 6);
    check(*by_row, {9, 3}, 1);  // within a row, whose zero point is 0
    EXPECT_TRUE(by_row->Part(9, 3)->zero_points().empty());
    EXPECT_EQ(by_row->Part(2, 4), nullptr);
    EXPECT_EQ(by_row->Part(8, 0), nullptr);
    check(*matrix(ScaleGrid::OfTensor(24), 1, has_zeros), {5, 11}, 1);
    check(*matrix({4, 1, 1, 0, 1, 0}, 4, has_zeros), {3, 6}, 6);  // a scale for each element
  }
  const Tensor nibbles = Tensor::Of<uint8_t>(DataType::kInt4, {8}, {1, 2, 3, 4});
  const auto four_bits = Compressed::Affine(nibbles, Tensor::Floats({1}, std::vector<float>{1}),
                                            Tensor(), ScaleGrid::OfTensor(8));
  EXPECT_EQ((*four_bits)->Part(0, 4), nullptr);
  EXPECT_EQ(Compressed::Sparse(64, {3}, {1.0f})->Part(0, 4), nullptr);
  EXPECT_EQ(Compressed::Integers(codes, DataType::kInt64)->Part(0, 4), nullptr);
}

}  // namespace
}  // namespace anemone
