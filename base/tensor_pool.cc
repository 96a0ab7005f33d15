#include "base/tensor_pool.h"

#include <mutex>
#include <utility>
#include <vector>

namespace anemone {
namespace {

// Of more, what has been idle the longest is given back to the system.
constexpr size_t kMostIdle = size_t{256} << 20;

}  // namespace

struct TensorPool::Shared {
  std::mutex mutex;
  std::vector<Block> idle;
  size_t idle_bytes = 0;
  bool is_closed = false;  // the pool is gone
};

TensorPool::TensorPool() : shared_(std::make_shared<Shared>()) {}

TensorPool::~TensorPool() {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->is_closed = true;
  shared_->idle.clear();
}

// The smallest that fits, but not one of which more than half would be unused.
TensorPool::Block TensorPool::TakeIdle(size_t size) const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  std::vector<Block>& idle = shared_->idle;
  auto best = idle.end();
  for (auto at = idle.begin(); at != idle.end(); ++at) {
    const bool fits = at->size >= size && at->size / 2 <= size;
    if (fits && (best == idle.end() || at->size < best->size)) best = at;
  }
  if (best == idle.end()) return {};
  Block block = std::move(*best);
  idle.erase(best);
  shared_->idle_bytes -= block.size;
  return block;
}

std::shared_ptr<std::byte> TensorPool::Lent(Block block) const {
  std::byte* const at = block.memory.get();
  const auto give_back = [shared = shared_, block = std::move(block)](std::byte*) mutable {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    if (shared->is_closed || block.size > kMostIdle) return;
    std::vector<Block>& idle = shared->idle;
    shared->idle_bytes += block.size;
    idle.push_back(std::move(block));
    while (shared->idle_bytes > kMostIdle) {
      shared->idle_bytes -= idle.front().size;
      idle.erase(idle.begin());
    }
  };
  return {at, give_back};
}

}  // namespace anemone
