// math/elementwise/element_steps.h: applies a sequence of elementwise operations to about two
// thousand elements at a time, so that intermediate results stay in the first-level cache.
//
//   StepCall calls[2];
//   calls[0] = {.step = {.kind = StepKind::kAffine, .first = 2, .second = 1}, .x = {.data = x}};
//   calls[1] = {.step = {.kind = StepKind::kBinary, .op = BinaryOp::kMul},
//               .x = {.step = 0}, .z = {.data = z}, .to = y};
//   RunSteps(calls, count);   // y[i] = Half(Half(2 * x[i] + 1) * z[i])
//
// Each step rounds exactly as the function with its name does: Affine(), Clamp(), LeakyRelu(),
// Gelu(), Sigmoid(), Silu(), Abs(), ApplyTable(), Binary(). kRound rounds as Unary::kRoundHalfAway.
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
  kRound,
  kTable,
  kBinary
};

struct ElementStep {
  StepKind kind = StepKind::kAffine;
  BinaryOp op = BinaryOp::kAdd;  // kBinary
  float first = 0, second = 0;   // kAffine: scale, bias; kClamp: limits; kLeakyRelu: slope
  const float *firsts = nullptr, *seconds = nullptr;  // kAffine: instead, one of each per channel
  const UnaryTable* table = nullptr;                  // kTable
};

// Runs of contiguous elements; all elements of a run belong to one channel.
struct ElementRuns {
  int64_t count = 0;         // elements of a run
  int64_t runs = 1;          // number of runs
  int64_t step = 0;          // elements from one run to the next in memory
  int64_t channel = 0;       // channel of the first run
  int64_t channel_step = 0;  // channels from one run to the next
};

// What a step reads: the result of an earlier step, or memory.
struct StepSource {
  int step = -1;               // index of the earlier call, or -1 for memory
  const Half* data = nullptr;  // memory: one element per element of the run
  bool repeated = false;       // or one element for the whole run
  int64_t run_step = 0;        // elements from one run to the next
};

struct StepCall {
  ElementStep step;
  StepSource x, z;  // z: kBinary
  // The result, with runs ElementRuns::step apart; null if only later steps read it.
  Half* to = nullptr;
};

inline constexpr int kMostSteps = 16;

// Runs at most kMostSteps calls. A step may read memory that it or an earlier step writes, element
// by element.
void RunSteps(absl::Span<const StepCall> calls, const ElementRuns& runs);
inline void RunSteps(absl::Span<const StepCall> calls, int64_t count) {
  RunSteps(calls, ElementRuns{.count = count});
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_ELEMENT_STEPS_H_
