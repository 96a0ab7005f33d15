// math/recurrent/recurrent_step.h: the pointers of one step of a recurrence, for its kernels,
// and how a batch is divided. Internal.
#ifndef ANEMONE_MATH_RECURRENT_RECURRENT_STEP_H_
#define ANEMONE_MATH_RECURRENT_RECURRENT_STEP_H_

#include <cstdint>

#include "math/core/half.h"
#include "math/recurrent/recurrent.h"

namespace anemone::math {

struct StepMemory {
  const RecurrentShape* shape = nullptr;
  const Half* x = nullptr;                          // what the inputs contribute to the gates
  const Half *h = nullptr, *c = nullptr;            // the state before; null: zeros
  Half* gates = nullptr;                            // at first, what state and bias contribute:
  bool has_opening = false, has_proposing = false;  // to all gates, or the last one of a GRU
  Half *new_h = nullptr, *new_c = nullptr;          // the state after
  float* state = nullptr;                           // by which the next product multiplies
};

// The number of parts into which the rows of a batch are divided, because no row waits for another.
// 0: threads share each step instead; a few rows read the weights as fast as one.
int64_t PartsOfRows(const PackedRecurrence& packed, int64_t batch);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_RECURRENT_RECURRENT_STEP_H_
