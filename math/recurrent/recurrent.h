// math/recurrent/recurrent.h: all steps of an LSTM, GRU or RNN.
//
//   // Once; the weights are 256 x 64.
//   const PackedRecurrence lstm = PackRecurrence(
//       {.gates = 4, .hidden = 64, .f = sigmoid, .g = tanh, .h = tanh}, {{weights}}, bias);
//   // x is 20 x 256, y is 20 x 64.
//   RunRecurrence(lstm, {.steps = 20, .inputs = x, .outputs = y});
//
// Each step computes, in this order and with a rounding to Half after each operation (the product
// and its bias are one):
//   LSTM: i, o, f, c = x + (R h + b); c' = f(f) * c + g(c) * f(i); h' = h(c') * f(o)
//   GRU:  z, r, n = as ONNX's; n' = g(x + ...); h' = n' + (h - n') * f(z)
//   RNN:  h' = f(x + (R h + b))
// The bits are those of Gemm(), Binary() and RunSteps(), for any number of threads.
#ifndef ANEMONE_MATH_RECURRENT_RECURRENT_H_
#define ANEMONE_MATH_RECURRENT_RECURRENT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "math/core/half.h"
#include "math/core/shared_pack.h"
#include "math/elementwise/element_steps.h"
#include "math/gemm/gemm.h"
#include "math/move/convert.h"

namespace anemone::math {

struct RecurrentShape {
  // 4: an LSTM, with the gates i, o, f, c; 3: a GRU, with z, r, h; 1: an RNN.
  int64_t gates = 1;
  int64_t hidden = 1;
  bool linear_before_reset = false;  // of a GRU
  ElementStep f, g, h;               // functions of one operand

  int64_t columns() const { return gates * hidden; }
  // Whether the product with the state has two parts: the second one depends on the first.
  bool is_in_parts() const { return gates == 3 && !linear_before_reset; }
};

struct PackedRecurrence {
  RecurrentShape shape;
  PackedMatrix opening;           // of all gates; if in parts, of the first two
  PackedMatrix proposing;         // if in parts, of the last gate
  std::vector<Half> bias;         // one per column, or empty
  std::vector<float> float_bias;  // the same
};

// Weights of the state for some gates, (gates * hidden, hidden). `coded` is their compressed form,
// or null; `id` is that of the constant.
struct RecurrentMatrix {
  HalfReader values;
  const CodedWeights* coded = nullptr;
  ConstantId id = {};
};
// `weights` are one matrix of all gates; if in parts, two: of the first two gates and of the last.
// `bias` may be empty.
PackedRecurrence PackRecurrence(const RecurrentShape& shape,
                                absl::Span<const RecurrentMatrix> weights,
                                absl::Span<const Half> bias);

struct RecurrentRun {
  int64_t steps = 1, batch = 1;
  bool backwards = false;        // the last step comes first
  const Half* inputs = nullptr;  // (steps, batch, gates * hidden)
  const Half* h = nullptr;       // the state, (batch, hidden); null: zeros, not computed with
  const Half* c = nullptr;       // of an LSTM
  Half* outputs = nullptr;       // (steps, batch, hidden), which overlaps nothing
  Half* last_c = nullptr;        // of an LSTM; may be null
};
void RunRecurrence(const PackedRecurrence& packed, const RecurrentRun& run);

// Calls step(x, h, c, new_h, new_c) for each step of `run`, one after the other: with its inputs,
// of which a step has `inputs`, the state before, which may be null, and the memory of the state
// after. `state`: elements of a state. `cells`: memory of two of them, which take turns; null if
// there is no c.
template <class Step>
void ForEachStep(const RecurrentRun& run, int64_t inputs, int64_t state, Half* cells,
                 const Step& step) {
  const Half *h = run.h, *c = run.c;
  for (int64_t i = 0; i < run.steps; ++i) {
    const int64_t at = run.backwards ? run.steps - 1 - i : i;
    Half* const new_h = run.outputs + at * state;
    Half* new_c = cells == nullptr ? nullptr : cells + i % 2 * state;
    if (i + 1 == run.steps && run.last_c != nullptr) new_c = run.last_c;
    step(run.inputs + at * inputs, h, c, new_h, new_c);
    h = new_h;
    c = new_c;
  }
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_RECURRENT_RECURRENT_H_
