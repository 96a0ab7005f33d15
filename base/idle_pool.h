// base/idle_pool.h: keeps the memory of runs that have ended for later ones: there are as many sets
// as there were runs at the same time.
//
//   std::optional<RunMemory> memory = pool.Take();
//   if (!memory) memory = MakeMemory();
//   pool.GiveBack(*std::move(memory));
#ifndef ANEMONE_BASE_IDLE_POOL_H_
#define ANEMONE_BASE_IDLE_POOL_H_

#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace anemone {

// Thread-safe. A copy begins empty, so that what runs can be copied without its memory.
template <class T>
class IdlePool {
 public:
  IdlePool() = default;
  IdlePool(const IdlePool& /*other*/) {}
  IdlePool& operator=(const IdlePool&) = delete;

  std::optional<T> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) return std::nullopt;
    std::optional<T> taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  void GiveBack(T item) {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(item));
  }

 private:
  std::mutex mutex_;
  std::vector<T> idle_;
};

}  // namespace anemone

#endif  // ANEMONE_BASE_IDLE_POOL_H_
