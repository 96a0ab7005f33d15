#include "base/tensor_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "anemone/tensor.h"

namespace anemone {
namespace {

constexpr int64_t kLarge = 1 << 20;

Tensor Floats(int64_t count) { return Tensor::Uninitialized(DataType::kFloat, {count}); }

TEST(TensorPool, MemoryIsUsedAgainWhenNobodyHoldsIt) {
  const TensorPool pool;
  const TensorPool::Scope scope(pool);
  std::optional<Tensor> first = Floats(kLarge), copy = first;
  const std::byte* const at = first->bytes().data();
  first.reset();
  EXPECT_NE(Floats(kLarge).bytes().data(), at);  // the copy holds it
  copy.reset();
  const Tensor again = Floats(kLarge - 1000);
  EXPECT_TRUE(again.bytes().data() == at || Floats(kLarge).bytes().data() == at);
}

TEST(TensorPool, SmallTensorsDoNotTakeLargeMemory) {
  const TensorPool pool;
  const TensorPool::Scope scope(pool);
  const std::byte* const at = Floats(kLarge).bytes().data();
  const Tensor small = Floats(kLarge / 3);
  EXPECT_NE(small.bytes().data(), at);
  EXPECT_EQ(Floats(kLarge).bytes().data(), at);
}

TEST(TensorPool, IsThatOfItsScopeAndThread) {
  const TensorPool pool, other;
  const TensorPool::Scope scope(pool);
  EXPECT_EQ(TensorPool::Current(), &pool);
  {
    const TensorPool::Scope inner(other);
    EXPECT_EQ(TensorPool::Current(), &other);
  }
  EXPECT_EQ(TensorPool::Current(), &pool);
  std::thread([] { EXPECT_EQ(TensorPool::Current(), nullptr); }).join();
}

TEST(TensorPool, TensorsOutliveIt) {
  Tensor kept;
  {
    const TensorPool pool;
    const TensorPool::Scope scope(pool);
    kept = Floats(kLarge);
  }
  kept.mutable_data<float>()[kLarge - 1] = 1;
  EXPECT_EQ(kept.at<float>(kLarge - 1), 1);
}

}  // namespace
}  // namespace anemone
