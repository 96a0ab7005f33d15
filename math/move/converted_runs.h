// math/move/converted_runs.h: runs of elements that are converted, for the kernels of convert.cc.
// Internal.
#ifndef ANEMONE_MATH_MOVE_CONVERTED_RUNS_H_
#define ANEMONE_MATH_MOVE_CONVERTED_RUNS_H_

#include <cstdint>

namespace anemone::math {

// `runs` runs of `count` elements, which need not be aligned. The steps are bytes.
struct ConvertedRuns {
  const char* from = nullptr;
  char* to = nullptr;
  int64_t from_step = 0, to_step = 0;
  int64_t runs = 1, count = 0;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_MOVE_CONVERTED_RUNS_H_
