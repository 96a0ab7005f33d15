#include "base/transpose_bytes.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace anemone {
namespace {

TEST(TransposeBytes, SizesAroundBlocksAndStrips) {
  for (int64_t rows : {0, 1, 15, 16, 17, 40, 100}) {
    for (int64_t columns : {0, 1, 15, 16, 32, 65, 130}) {
      std::vector<std::byte> from(rows * columns), to(rows * columns + 1, std::byte{77});
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 256);
      TransposeBytes(from.data(), rows, columns, to.data());
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          ASSERT_EQ(to[j * rows + i], from[i * columns + j]) << rows << "x" << columns;
        }
      }
      EXPECT_EQ(to.back(), std::byte{77});
    }
  }
}

}  // namespace
}  // namespace anemone
