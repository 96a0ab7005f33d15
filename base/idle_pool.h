// base/idle_pool.h: keeps the memory of runs that have ended for later ones: there are as many sets
// as there were runs at the same time.
//
//   std::optional<RunMemory> memory = pool.Take();
//   if (!memory) memory = MakeMemory();
//   pool.GiveBack(*std::move(memory));
#ifndef ANEMONE_BASE_IDLE_POOL_H_
#define ANEMONE_BASE_IDLE_POOL_H_

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace anemone {

// Thread-safe. Copies share the memory: what runs can be copied, and either may run in it.
template <class T>
class IdlePool {
 public:
  std::optional<T> Take() const {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (shared_->idle.empty()) return std::nullopt;
    std::optional<T> taken = std::move(shared_->idle.back());
    shared_->idle.pop_back();
    return taken;
  }
  void GiveBack(T item) const {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->idle.push_back(std::move(item));
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::vector<T> idle;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace anemone

#endif  // ANEMONE_BASE_IDLE_POOL_H_
