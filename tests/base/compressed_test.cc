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

}  // namespace
}  // namespace anemone
