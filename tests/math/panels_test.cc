#include "engine/math/panels.h"

#include <gtest/gtest.h>

namespace anemone::math {
namespace {

int64_t Blocks(int64_t rows, int64_t columns, BlockSize size) {
  return CeilDiv(rows, size.rows) * CeilDiv(columns, size.columns);
}

// What the thread with the most blocks multiplies.
int64_t LongestWork(int64_t rows, int64_t columns, BlockSize size, int64_t copies,
                    int64_t threads) {
  return CeilDiv(copies * Blocks(rows, columns, size), threads) * size.rows * size.columns;
}

TEST(Panels, BlocksFitTheCachesAndAreAtMostFourForAThread) {
  for (const int64_t rows : {1, 7, 64, 197, 2048, 100000}) {
    for (const int64_t columns : {1, 48, 49, 3025, 50176}) {
      for (const int64_t depth : {1, 300, 4608}) {
        const int64_t least = CeilDiv(rows, kBlockRows) * CeilDiv(columns, ColumnsOf(depth));
        for (int64_t threads = 1; threads <= 64; ++threads) {
          const BlockSize size = ChooseBlock(rows, columns, depth, kPanelColumns, 1, threads);
          ASSERT_GT(size.rows, 0);
          ASSERT_LE(size.rows, kBlockRows);
          ASSERT_EQ(size.rows % kTileRows, 0);
          ASSERT_GT(size.columns, 0);
          ASSERT_LE(size.columns, ColumnsOf(depth));
          ASSERT_EQ(size.columns % kPanelColumns, 0);
          ASSERT_LE(Blocks(rows, columns, size), std::max(least, 4 * threads));
        }
      }
    }
  }
}

TEST(Panels, MoreThreadsNeverHaveMoreToDo) {
  for (const int64_t copies : {1, 3, 12}) {
    for (const int64_t rows : {64, 197, 512}) {
      for (const int64_t columns : {196, 384, 3025}) {
        const BlockSize alone = ChooseBlock(rows, columns, 256, kPanelColumns, copies, 1);
        for (int64_t threads = 2; threads <= 64; ++threads) {
          const BlockSize size = ChooseBlock(rows, columns, 256, kPanelColumns, copies, threads);
          EXPECT_LE(LongestWork(rows, columns, size, copies, threads),
                    LongestWork(rows, columns, alone, copies, threads));
        }
      }
    }
  }
}

// 28x28 positions of 128 channels were one task once.
TEST(Panels, TwoThreadsShareEvenly) {
  const BlockSize size = ChooseBlock(128, 784, 256, 16, 1, 2);
  EXPECT_EQ(Blocks(128, 784, size) % 2, 0);
  EXPECT_LE(LongestWork(128, 784, size, 1, 2), 128 * 784 / 2 * 11 / 10);
}

}  // namespace
}  // namespace anemone::math
