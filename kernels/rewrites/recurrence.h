// kernels/rewrites/recurrence.h: all steps of one direction of an LSTM, GRU or RNN as one unit, a
// loop (engine/loops.h). No target has it: it stands for the units of kernels/rewrites/
// recurrent_steps.h, and is refused as they are.
//
//   const Lowering* row = LoopOf(lowering);  // for a plan that is only run
#ifndef ANEMONE_KERNELS_REWRITES_RECURRENCE_H_
#define ANEMONE_KERNELS_REWRITES_RECURRENCE_H_

#include "absl/strings/string_view.h"
#include "kernels/lowering.h"
#include "kernels/rewrites/recurrent_steps.h"

namespace anemone {

// Adds the unit. `inputs` are the contributions of the inputs to the gates, (1, steps, batch, gates
// * hidden). The result is (1, steps, batch, hidden), the output of every step in the order of the
// sequence; with `gives_cell`, one more at the end, the last cell state of an LSTM.
Operand Recurrence(NetworkBuilder& c, const RecurrentStep& step, RecurrentWeights weights,
                   const Operand& inputs, const StepOrder& order, const RecurrentState& state,
                   bool gives_cell);

// The row that lowers the same nodes to loops; null if there is none.
const Lowering* LoopOf(const Lowering& row);

// FindUnitKind(), and the kind of loops.
const UnitKind* FindKindOrLoop(absl::string_view type);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_RECURRENCE_H_
