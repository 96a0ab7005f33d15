#include "engine/software/memory_plan.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "base/saturated.h"
#include "engine/device.h"
#include "engine/network.h"
#include "engine/surface.h"

namespace anemone {
namespace {

TEST(MemoryPlan, LivesThatDoNotMeetShareBytes) {
  MemoryPlan plan;
  int a = plan.Add(1000, 0);
  int b = plan.Add(1000, 1);
  int c = plan.Add(1000, 2);
  plan.Extend(a, 1);
  plan.Extend(b, 2);
  EXPECT_EQ(plan.Pack(), 2 * 1024);  // sizes are padded to 64 bytes
  EXPECT_EQ(plan.offset(a), plan.offset(c));
  EXPECT_NE(plan.offset(a), plan.offset(b));
}

TEST(MemoryPlan, ABlockBornBeforeTheFirstStepIsKept) {
  MemoryPlan plan;
  int input = plan.Add(64, -1);
  plan.Extend(input, 5);
  int other = plan.Add(64, 3);
  plan.Pack();
  EXPECT_NE(plan.offset(input), plan.offset(other));
}

// 2^58 elements are the most that a tensor can have.
constexpr int64_t kHuge = int64_t{1} << 58;

TEST(MemoryPlan, ManyHugeBlocksDoNotOverflow) {
  MemoryPlan plan;
  for (int i = 0; i < 64; ++i) plan.Extend(plan.Add(kHuge, i), 64);
  EXPECT_EQ(plan.Pack(), kSaturated);
}

TEST(MemoryPlan, AnEstimateOfManyHugeTensorsDoesNotOverflow) {
  Network network;
  const float one = 1;
  const Tensor fill = Tensor::Fill(DataType::kFloat, {kHuge, 1, 1, 1},
                                   {reinterpret_cast<const std::byte*>(&one), sizeof(one)});
  for (int i = 0; i < 33; ++i) network.constants.push_back({fill, MakeDims(kHuge, 1, 1, 1)});
  EXPECT_EQ(EstimateMemory(network, Route::kNetplist, {}).weights, kSaturated);
}

TEST(MemoryPlan, ASurfaceOfManyShortRowsDoesNotOverflow) {
  EXPECT_EQ(LayoutOf(MakeDims(kHuge, 1, 1, 1), Format::kFloat16, Route::kNetplist).bytes(),
            kSaturated);
}

// Random lifetimes: two blocks that are alive at the same time never overlap.
TEST(MemoryPlan, NeverOverlapsLivingBlocks) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    MemoryPlan plan;
    struct Block {
      int64_t size;
      int born, last;
    };
    std::vector<Block> blocks;
    for (int step = 0; step < 60; ++step) {
      Block block{static_cast<int64_t>(random() % 5000 + 1), step,
                  step + static_cast<int>(random() % 10)};
      plan.Extend(plan.Add(block.size, block.born), block.last);
      blocks.push_back(block);
    }
    int64_t end = plan.Pack();
    for (size_t i = 0; i < blocks.size(); ++i) {
      ASSERT_LE(plan.offset(i) + blocks[i].size, end);
      for (size_t j = 0; j < i; ++j) {
        bool meet = blocks[i].born <= blocks[j].last && blocks[j].born <= blocks[i].last;
        bool overlap = plan.offset(i) < plan.offset(j) + blocks[j].size &&
                       plan.offset(j) < plan.offset(i) + blocks[i].size;
        ASSERT_FALSE(meet && overlap) << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace anemone
