// math/core/parallel.h: parallel loops for the functions of math. Internal.
//
//   ParallelFor(planes, /*grain=*/4, [&](int64_t begin, int64_t end) {
//     for (int64_t plane = begin; plane < end; ++plane) CopyPlane(plane);
//   });
//
// Work is divided by output elements, never within one sum, so results do not depend on the number
// of threads. The pieces run on the calling thread and on workers of its oneTBB arena. A worker
// that has helped looks for the next loop of the same thread for 200 microseconds, because to wake
// it takes longer than many loops. The calling thread does no other work of the arena while it
// waits, so its scratch and thread-local state stay as they are. A body must not start parallel
// work: it may be using the scratch of its thread.
#ifndef ANEMONE_MATH_CORE_PARALLEL_H_
#define ANEMONE_MATH_CORE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace anemone::math {

// The number of elements (about 5 microseconds of cheap work) below which a piece of work is not
// worth another thread.
inline constexpr int64_t kElementGrain = 16384;

// The number of threads in the calling thread's arena.
int64_t ThreadCount();

// Divides [0, count) into pieces of about `grain` or more and calls body(begin, end) for each.
void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// The same for items that each cost as much as `item_elements` elements.
inline void ParallelForItems(int64_t count, int64_t item_elements,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  ParallelFor(count, kElementGrain / (item_elements < 1 ? 1 : item_elements), body);
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_PARALLEL_H_
