// engine/software/arena_pool.h: memory for the intermediate values of runs. The programs of a
// device share it: those that run one after another have the memory of the largest.
//
//   ArenaPool pool;
//   Arena arena = pool.Take(/*halves=*/4096, nullptr);  // its data is null without memory for it
//   pool.GiveBack(std::move(arena));
#ifndef ANEMONE_ENGINE_SOFTWARE_ARENA_POOL_H_
#define ANEMONE_ENGINE_SOFTWARE_ARENA_POOL_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "math/core/half.h"
#include "math/core/scratch.h"

namespace anemone {

using HalfBuffer = std::unique_ptr<math::Half[], math::AlignedFree>;

// Null if there is no memory for it.
HalfBuffer AllocateHalves(int64_t count);

struct Arena {
  HalfBuffer data;
  int64_t halves = 0;
};

// Thread-safe.
class ArenaPool {
 public:
  // An arena of at least so many halves: the one at `before` if it is idle, else the smallest that
  // is large enough, else a new one in place of the largest that is idle.
  Arena Take(int64_t halves, const math::Half* before);
  void GiveBack(Arena arena);

 private:
  std::mutex mutex_;
  std::vector<Arena> idle_;  // from the smallest to the largest; guarded by mutex_
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_ARENA_POOL_H_
