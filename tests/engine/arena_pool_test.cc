#include "engine/software/arena_pool.h"

#include <gtest/gtest.h>

#include <utility>

namespace anemone {
namespace {

TEST(ArenaPool, RunsOneAfterAnotherHaveTheMemoryOfTheLargest) {
  ArenaPool pool;
  pool.GiveBack(pool.Take(100, nullptr));
  Arena large = pool.Take(300, nullptr);  // in place of the small one
  EXPECT_EQ(large.halves, 300);
  const math::Half* const place = large.data.get();
  pool.GiveBack(std::move(large));
  Arena again = pool.Take(100, nullptr);
  EXPECT_EQ(again.data.get(), place);
  EXPECT_EQ(pool.Take(50, nullptr).halves, 50);  // none is idle
}

TEST(ArenaPool, RunsAtTheSameTimeGetTheirArenasAgain) {
  ArenaPool pool;
  Arena a = pool.Take(200, nullptr), b = pool.Take(200, nullptr), small = pool.Take(100, nullptr);
  const math::Half *const at_a = a.data.get(), *const at_b = b.data.get();
  ASSERT_NE(at_a, at_b);
  for (Arena* arena : {&a, &b, &small}) pool.GiveBack(std::move(*arena));
  a = pool.Take(200, at_a);
  b = pool.Take(200, at_b);
  EXPECT_EQ(a.data.get(), at_a);
  EXPECT_EQ(b.data.get(), at_b);
  pool.GiveBack(std::move(a));
  EXPECT_EQ(pool.Take(100, nullptr).halves, 100);  // the smallest that is large enough
}

}  // namespace
}  // namespace anemone
