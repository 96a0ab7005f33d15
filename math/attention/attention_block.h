// math/attention/attention_block.h: the part of an attention that one kernel call computes.
// Internal.
#ifndef ANEMONE_MATH_ATTENTION_ATTENTION_BLOCK_H_
#define ANEMONE_MATH_ATTENTION_ATTENTION_BLOCK_H_

#include <cstdint>

#include "math/core/half.h"

namespace anemone::math {

// The rows of one head, `rows` of them at `first`, the others at `more`.
struct HeadRows {
  const Half *first, *more;
  int64_t rows, step, more_step;
  const Half* Row(int64_t i) const {
    return i < rows ? first + i * step : more + (i - rows) * more_step;
  }
};

// Some queries of one head. Pointers are to the first element of the head; steps are the distance
// in elements from one position of the sequence to the next.
struct AttentionBlock {
  int64_t queries, keys, dim, value_dim;
  // Whether the whole head has one query. It is then summed in another order, so this must not
  // depend on how the work is divided into blocks.
  bool only_one;
  const Half* q;
  int64_t q_step;
  HeadRows k, v;
  const Half* mask;   // of `k.first`, or null
  int64_t mask_step;  // 0: all queries share one row of the mask
  int64_t mask_more;  // from the mask of `k.first` to that of `k.more`
  float scale;
  Half* y;
  int64_t y_step;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ATTENTION_ATTENTION_BLOCK_H_
