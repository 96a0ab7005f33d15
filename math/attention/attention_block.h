// math/attention/attention_block.h: a part of an attention as its kernel sees it. Internal.
#ifndef ANEMONE_MATH_ATTENTION_ATTENTION_BLOCK_H_
#define ANEMONE_MATH_ATTENTION_ATTENTION_BLOCK_H_

#include <cstdint>

#include "math/core/half.h"

namespace anemone::math {

// Some queries of one head. Pointers lead to its first elements, steps from one position of the
// sequence to the next.
struct AttentionBlock {
  int64_t queries, keys, dim, value_dim;
  bool only_one;  // query of the head: it is summed in another order, so no cut may decide that
  const Half *q, *k, *v;
  int64_t q_step, k_step, v_step;
  const Half* mask;   // null: none
  int64_t mask_step;  // 0: the same for each query
  float scale;
  Half* y;
  int64_t y_step;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ATTENTION_ATTENTION_BLOCK_H_
