// math/reduce/normalized_rows.h: rows of one array that are normalized in one call, for
// normalize.cc. Internal.
#ifndef ANEMONE_MATH_REDUCE_NORMALIZED_ROWS_H_
#define ANEMONE_MATH_REDUCE_NORMALIZED_ROWS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "math/core/half.h"
#include "math/core/loop_nest.h"

namespace anemone::math {

// The factor of a row: 1 / sqrt(sum of squares / divisor + epsilon), or 0 for 1 / 0, so that a row
// of zeros stays zero (0 * infinity is 0 on the engine).
struct RowScale {
  float divisor = 1, epsilon = 0;

  float Of(float sum_squares) const {
    const float square = sum_squares / divisor + epsilon;
    return square == 0.0f ? 0.0f : 1.0f / std::sqrt(square);
  }
};

// The rows of `count` elements that are normalized together: a few thousand elements.
inline constexpr int64_t kMostTogether = 8;
inline int64_t RowsTogether(int64_t count) {
  return std::clamp<int64_t>(kMostTogether * 256 / count, 1, kMostTogether);
}

// `rows` rows of `count` elements, which follow each other.
struct NormalizedRows {
  const Half* x = nullptr;
  Half* y = nullptr;
  int64_t rows = 0, count = 0;
  bool subtract_mean = false;
  RowScale scale;
  // Of the first row; those of the next row are this much further.
  const float *gamma = nullptr, *beta = nullptr;
  int64_t gamma_row = 0, beta_row = 0;
  const LoopNest<3>* terms = nullptr;  // iterates over the elements of a row, gamma and beta
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_REDUCE_NORMALIZED_ROWS_H_
