// math/elementwise/element_steps.h: operations on the same elements, one after the other on some
// two thousand of them at a time, so that what passes between them stays in the nearest cache.
//
//   StepCall calls[2];
//   calls[0] = {.step = {.kind = StepKind::kAffine, .first = 2, .second = 1}, .x = {.data = x}};
//   calls[1] = {.step = {.kind = StepKind::kBinary, .op = BinaryOp::kMul},
//               .x = {.step = 0}, .z = {.data = z}, .to = y};
//   RunSteps(calls, count);   // y[i] = Half(Half(2 * x[i] + 1) * z[i])
//
// Each result is rounded as the function of its own rounds it: Affine(), Clamp(), LeakyRelu(),
// Gelu(), Sigmoid(), Silu(), Abs(), ApplyTable(), Binary().
#ifndef ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_H_
#define ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/half.h"
#include "math/elementwise/elementwise.h"
#include "math/elementwise/unary.h"

namespace anemone::math {

enum class StepKind : uint8_t {
  kAffine,
  kClamp,
  kLeakyRelu,
  kGelu,
  kSigmoid,
  kSilu,
  kAbs,
  kTable,
  kBinary
};

struct ElementStep {
  StepKind kind = StepKind::kAffine;
  BinaryOp op = BinaryOp::kAdd;  // kBinary
  float first = 0, second = 0;   // kAffine: scale, bias; kClamp: limits; kLeakyRelu: slope
  const float *firsts = nullptr, *seconds = nullptr;  // kAffine: both by channel instead
  const UnaryTable* table = nullptr;                  // kTable
};

// Runs of elements, each after the other in memory and of one channel.
struct ElementRuns {
  int64_t count = 0;                      // of a run
  int64_t runs = 1, step = 0;             // from one to the next in memory
  int64_t channel = 0, channel_step = 0;  // the first one's, and from one to the next
};

// What a step reads: the result of an earlier one, or memory: an element for each, or one for all
// of a run; those of the next run lie `run_step` further on.
struct StepSource {
  int step = -1;
  const Half* data = nullptr;
  bool repeated = false;
  int64_t run_step = 0;
};

struct StepCall {
  ElementStep step;
  StepSource x, z;     // z: kBinary
  Half* to = nullptr;  // ElementRuns::step apart by runs; null: only later steps read the result
};

inline constexpr int kMostSteps = 16;

// At most kMostSteps calls. Memory that is read may be what an earlier or the same step writes, at
// the same place.
void RunSteps(absl::Span<const StepCall> calls, const ElementRuns& runs);
inline void RunSteps(absl::Span<const StepCall> calls, int64_t count) {
  RunSteps(calls, ElementRuns{.count = count});
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_H_
