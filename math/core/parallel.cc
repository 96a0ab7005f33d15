#include "math/core/parallel.h"

#include "tbb/blocked_range.h"
#include "tbb/parallel_for.h"
#include "tbb/task_arena.h"

namespace anemone::math {

int64_t ThreadCount() { return tbb::this_task_arena::max_concurrency(); }

void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  if (count <= grain || ThreadCount() == 1) return body(0, count);
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, count, grain),
      [&](const tbb::blocked_range<int64_t>& range) { body(range.begin(), range.end()); });
}

void RunAlone(absl::FunctionRef<void()> body) { tbb::this_task_arena::isolate(body); }

}  // namespace anemone::math
