#include "engine/software/arena_pool.h"

#include <algorithm>
#include <utility>

namespace anemone {

HalfBuffer AllocateHalves(int64_t count) {
  const auto bytes = count * static_cast<int64_t>(sizeof(math::Half));
  return HalfBuffer(static_cast<math::Half*>(math::AllocateAligned(bytes, true)));
}

Arena ArenaPool::Take(int64_t halves, const math::Half* before) {
  Arena small;  // is freed before the new one is made
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto fits = [&](const Arena& arena) { return arena.halves >= halves; };
    auto found = std::find_if(idle_.begin(), idle_.end(), [&](const Arena& arena) {
      return fits(arena) && arena.data.get() == before;
    });
    if (found == idle_.end()) found = std::find_if(idle_.begin(), idle_.end(), fits);
    if (found != idle_.end()) {
      Arena taken = std::move(*found);
      idle_.erase(found);
      return taken;
    }
    if (!idle_.empty()) {
      small = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  small.data.reset();
  return {AllocateHalves(halves), halves};
}

void ArenaPool::GiveBack(Arena arena) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto larger = std::find_if(idle_.begin(), idle_.end(),
                                   [&](const Arena& idle) { return idle.halves > arena.halves; });
  idle_.insert(larger, std::move(arena));
}

}  // namespace anemone
