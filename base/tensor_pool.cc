#include "base/tensor_pool.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace anemone {
namespace {

// More is given back to the system.
constexpr size_t kMostIdle = size_t{256} << 20;

}  // namespace

struct TensorPool::Shared {
  std::mutex mutex;
  std::vector<Block> idle;
  size_t idle_bytes = 0;
};

TensorPool::TensorPool() : shared_(std::make_shared<Shared>()) {}

// The smallest that fits, but not one of which half would be unused.
TensorPool::Block TensorPool::TakeIdle(size_t size) const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  std::vector<Block>& idle = shared_->idle;
  auto best = idle.end();
  for (auto at = idle.begin(); at != idle.end(); ++at) {
    const bool fits = at->size >= size && at->size / 2 <= size;
    if (fits && (best == idle.end() || at->size < best->size)) best = at;
  }
  if (best == idle.end()) return {};
  std::swap(*best, idle.back());
  Block block = std::move(idle.back());
  idle.pop_back();
  shared_->idle_bytes -= block.size;
  return block;
}

std::shared_ptr<std::byte> TensorPool::Lent(Block block) const {
  std::byte* const at = block.memory.get();
  const auto give_back = [shared = shared_, block = std::move(block)](std::byte*) mutable {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    if (shared->idle_bytes + block.size > kMostIdle) return;
    shared->idle_bytes += block.size;
    shared->idle.push_back(std::move(block));
  };
  return {at, give_back};
}

}  // namespace anemone
