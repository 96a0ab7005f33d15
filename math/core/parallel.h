// math/core/parallel.h: how the functions of this folder use threads. Internal.
//
//   ParallelFor(planes, /*grain=*/4, [&](int64_t begin, int64_t end) { ... });
//
// Work is cut into pieces of whole output elements, never into parts of one sum, so the number of
// threads never shows in a result. Pieces run in the oneTBB arena of the calling thread. A body
// must not start parallel work itself: it may hold this thread's scratch.
#ifndef ANEMONE_MATH_CORE_PARALLEL_H_
#define ANEMONE_MATH_CORE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace anemone::math {

// Elements below which a piece of cheap work is not worth another thread (about 5 microseconds).
inline constexpr int64_t kElementGrain = 16384;

// Of the calling thread's arena.
int64_t ThreadCount();

// Calls body(begin, end) for pieces that together make [0, count), each of about `grain` or more.
void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// The same for items that cost `item_elements` each.
inline void ParallelForItems(int64_t count, int64_t item_elements,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  ParallelFor(count, kElementGrain / (item_elements < 1 ? 1 : item_elements), body);
}

// Calls body(), which may start parallel work. While it waits for that, this thread takes up no
// other work, which would use its scratch.
void RunAlone(absl::FunctionRef<void()> body);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_PARALLEL_H_
