#include "math/gemm/panels.h"

#include <gtest/gtest.h>

namespace anemone::math {
namespace {

// The work of the busiest thread if blocks are divided evenly, with consecutive blocks for each
// thread.
int64_t LongestWork(const Cut& cut, int64_t copies, int64_t threads) {
  int64_t longest = 0;
  const int64_t tasks = copies * cut.blocks();
  for (int64_t thread = 0; thread < threads; ++thread) {
    const Part mine(tasks, 1, thread, threads);
    int64_t work = 0;
    for (int64_t task = mine.first; task < mine.last; ++task) {
      const int64_t block = task % cut.blocks();
      work += cut.Rows(block).size() * cut.Columns(block).size();
    }
    longest = std::max(longest, work);
  }
  return longest;
}

// There are at most four parts per thread, and they need not end where blocks would.
TEST(Panels, BlocksFitTheCachesAndAreFew) {
  for (const int64_t rows : {1, 7, 64, 197, 2048, 100000}) {
    for (const int64_t columns : {1, 48, 49, 3025, 50176}) {
      for (const int64_t depth : {1, 300, 4608}) {
        const int64_t least = CeilDiv(rows, kBlockRows) * CeilDiv(columns, ColumnsOf(depth));
        for (int64_t threads = 1; threads <= 64; ++threads) {
          const Cut cut = ChooseBlocks({rows, columns}, depth, kPanelColumns, 1, threads);
          ASSERT_LE(cut.largest().rows, kBlockRows);
          ASSERT_LE(cut.largest().columns, ColumnsOf(depth));
          ASSERT_LE(cut.blocks(), 2 * (least + 4 * threads));
        }
      }
    }
  }
}

TEST(Panels, BlocksAreOfWholeStepsAndMakeAll) {
  for (const int64_t rows : {1, 7, 64, 197}) {
    for (const int64_t columns : {1, 49, 3025}) {
      for (int64_t threads = 1; threads <= 9; ++threads) {
        const Cut cut = ChooseBlocks({rows, columns}, 300, kPanelColumns, 1, threads);
        int64_t work = 0;
        for (int64_t block = 0; block < cut.blocks(); ++block) {
          const Part part_of_rows = cut.Rows(block), part_of_columns = cut.Columns(block);
          ASSERT_EQ(part_of_rows.first % kTileRows, 0);
          ASSERT_EQ(part_of_columns.first % kPanelColumns, 0);
          ASSERT_GT(part_of_rows.size(), 0);
          ASSERT_GT(part_of_columns.size(), 0);
          work += part_of_rows.size() * part_of_columns.size();
        }
        EXPECT_EQ(work, rows * columns);
      }
    }
  }
}

// Allows 5 % more, because packing differs.
TEST(Panels, MoreThreadsNeverHaveMoreToDo) {
  for (const int64_t copies : {1, 3, 12}) {
    for (const int64_t rows : {64, 197, 512}) {
      for (const int64_t columns : {196, 384, 3025}) {
        const Cut alone = ChooseBlocks({rows, columns}, 256, kPanelColumns, copies, 1);
        for (int64_t threads = 2; threads <= 64; ++threads) {
          const Cut cut = ChooseBlocks({rows, columns}, 256, kPanelColumns, copies, threads);
          EXPECT_LE(LongestWork(cut, copies, threads),
                    LongestWork(alone, copies, threads) * 21 / 20);
        }
      }
    }
  }
}

// Sizes that earlier versions divided unevenly: 28x28 positions of 128 channels were one task, ten
// pairs of panels became parts of 3, 3, 3 and 1, and five pairs became blocks of 3 and 2.
TEST(Panels, TwoThreadsShareEvenly) {
  EXPECT_LE(LongestWork(ChooseBlocks({128, 784}, 256, 16, 1, 2), 1, 2), 128 * 784 / 2 * 11 / 10);
  EXPECT_EQ(LongestWork(ChooseBlocks({48, 169}, 384, 16, 1, 2), 1, 2), 48 * 169 / 2);
  for (const BlockSize size : {BlockSize{240, 960}, BlockSize{480, 480}}) {
    const Cut pairs = CutBlocks(size, {512, 384}, {16, 96}, {.b_rows = 4, .a_columns = 8}, 1, 2);
    EXPECT_EQ(LongestWork(pairs, 1, 2), size.rows * size.columns / 2);
  }
}

}  // namespace
}  // namespace anemone::math
