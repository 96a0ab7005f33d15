// engine/math/parallel.h: how the functions of this folder use threads. Internal.
//
//   ParallelFor(planes, /*grain=*/4, [&](int64_t begin, int64_t end) { ... });
//
// Work is cut into pieces of whole output elements, never into parts of one sum, so the number of
// threads never shows in a result. Pieces run in the oneTBB arena of the calling thread. A body
// must not start parallel work itself: it may hold this thread's scratch.
#ifndef ENGINE_MATH_PARALLEL_H_
#define ENGINE_MATH_PARALLEL_H_

#include <cstdint>

#include "tbb/blocked_range.h"
#include "tbb/parallel_for.h"
#include "tbb/task_arena.h"

namespace anemone::math {

// Elements below which a piece of cheap work is not worth another thread (about 5 microseconds).
inline constexpr int64_t kElementGrain = 16384;

inline int64_t ThreadCount() { return tbb::this_task_arena::max_concurrency(); }

// Calls body(begin, end) for pieces that together make [0, count), each of about `grain` or more.
template <class Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  if (count <= grain || ThreadCount() == 1) return body(0, count);
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, count, grain),
      [&](const tbb::blocked_range<int64_t>& range) { body(range.begin(), range.end()); });
}

// The same for items that cost `item_elements` each.
template <class Body>
void ParallelForItems(int64_t count, int64_t item_elements, const Body& body) {
  ParallelFor(count, kElementGrain / (item_elements < 1 ? 1 : item_elements), body);
}

}  // namespace anemone::math

#endif  // ENGINE_MATH_PARALLEL_H_
