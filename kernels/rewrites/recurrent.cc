// LSTM, GRU and RNN, for which no target has a unit (op_matrix.json: "unroll a fixed number of
// steps into conv/matmul/activation"). The steps are unrolled into units
// (kernels/rewrites/recurrent_steps.h). For a plan that is only run they stay a loop
// (kernels/rewrites/recurrence.h).
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/node_inputs.h"
#include "kernels/rewrites/recurrence.h"
#include "kernels/rewrites/recurrent_form.h"
#include "kernels/rewrites/recurrent_steps.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"
#include "kernels/units/linear.h"
#include "kernels/units/reshape.h"

namespace anemone {
namespace {

// The constants of one direction.
struct Weights {
  Tensor w;
  std::optional<Tensor> w_bias;
  RecurrentWeights of_state;
};

Weights WeightsOf(const Node& node, LowerContext& c, const RecurrentForm& form, int64_t direction) {
  const int64_t rows = form.gates * form.hidden;
  Weights weights;
  weights.w = PartOf(*c.view().Constant(node.inputs[1]), direction * rows * form.inputs,
                     {rows, form.inputs});
  weights.of_state.r = PartOf(*c.view().Constant(node.inputs[2]), direction * rows * form.hidden,
                              {rows, form.hidden});
  if (HasInput(node, 3)) {
    const Tensor& b = *c.view().Constant(node.inputs[3]);
    weights.w_bias = PartOf(b, direction * 2 * rows, {rows});
    weights.of_state.bias = PartOf(b, direction * 2 * rows + rows, {rows});
  }
  return weights;
}

bool IsZero(const Tensor& tensor) {
  std::vector<float> values = RoundedFloats(tensor.is_fill() ? PartOf(tensor, 0, {1}) : tensor);
  return std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

// One direction of one node.
class Direction {
 public:
  Direction(LowerContext& c, const Node& node, const RecurrentForm& form, int64_t direction)
      : c_(c),
        node_(node),
        form_(form),
        direction_(direction),
        weights_(WeightsOf(node, c, form, direction)) {}

  // Returns the output of every step, in the order of the sequence, and the last state.
  absl::Status Unroll(std::vector<Operand>& outputs, RecurrentState& state) {
    ANEMONE_ASSIGN_OR_RETURN(state, Initial());
    const Operand inputs = InputGates();
    outputs = AddSteps(c_, StepOf(), weights_.of_state, inputs, order(), state);
    return absl::OkStatus();
  }

  // The same as one unit: the outputs are one value (1, steps, batch, hidden). Without `gives_cell`
  // the last cell state is not there.
  absl::Status Loop(bool gives_cell, Operand& outputs, RecurrentState& state) {
    ANEMONE_ASSIGN_OR_RETURN(state, Initial());
    const Operand inputs = InputGates();
    const Operand all =
        Recurrence(c_, StepOf(), weights_.of_state, inputs, order(), state, gives_cell);
    outputs = Sliced(c_, all, Axis::kC, 0, form_.steps);
    state = {Sliced(c_, all, Axis::kC, order().backwards ? 0 : form_.steps - 1, 1), std::nullopt};
    if (gives_cell) state.c = Sliced(c_, all, Axis::kC, form_.steps, 1);
    return absl::OkStatus();
  }

 private:
  StepOrder order() const {
    return {.steps = form_.steps, .backwards = direction_ == 1 || form_.backwards};
  }

  NeuronType Function(size_t i) const {
    const size_t each = form_.functions.size() / form_.directions;
    return form_.functions[direction_ * each + std::min(i, each - 1)];
  }

  RecurrentStep StepOf() const {
    return {form_.cell,  form_.batch, form_.hidden, form_.linear_before_reset,
            Function(0), Function(1), Function(2)};
  }

  // The initial state, without values that are zero or omitted.
  absl::StatusOr<RecurrentState> Initial() {
    RecurrentState state;
    ANEMONE_ASSIGN_OR_RETURN(state.h, Initial(5));
    if (form_.cell == RecurrentCell::kLstm) {
      ANEMONE_ASSIGN_OR_RETURN(state.c, Initial(6));
    }
    return state;
  }

  // The initial state of this direction from input `i`, which has both directions. nullopt if it is
  // zero or omitted.
  absl::StatusOr<std::optional<Operand>> Initial(size_t i) {
    if (!HasInput(node_, i)) return std::nullopt;
    if (const Tensor* constant = c_.view().Constant(node_.inputs[i])) {
      if (!IsEngineConstant(constant->type()) || !IsZero(*constant)) {
        return c_.NotLowered(
            absl::StrCat(node_.op_type, " with a constant initial state other than zero"));
      }
      return std::nullopt;
    }
    Operand x = c_.In(node_.inputs[i]);
    // The input is (directions, batch, hidden) or (batch, directions, hidden), on N, C and W.
    x = Sliced(c_, x, form_.batch_first ? Axis::kC : Axis::kN, direction_, 1);
    x = ReshapeToDims(c_, x, MakeDims(form_.batch, form_.hidden, 1, 1));
    return std::optional<Operand>(x);
  }

  // x * W + Wb for all steps. The steps are on C.
  Operand InputGates() {
    const int64_t rows = form_.steps * form_.batch, columns = form_.gates * form_.hidden;
    ConstantMatrix w{.values = weights_.w,
                     .k = form_.inputs,
                     .n = columns,
                     .order = math::MatrixOrder::kColumnMajor};
    Operand x = c_.In(node_.inputs[0]);
    x = FullyConnected(c_, x, {1, rows, form_.inputs}, w,
                       weights_.w_bias ? &*weights_.w_bias : nullptr, {1, rows, columns});
    return ReshapeToDims(c_, x,
                         form_.batch_first ? MakeDims(form_.batch, form_.steps, 1, columns)
                                           : MakeDims(1, form_.steps, form_.batch, columns));
  }

  LowerContext& c_;
  const Node& node_;
  const RecurrentForm& form_;
  int64_t direction_;
  Weights weights_;
};

// The output Y of one direction: (steps, 1, batch, hidden), or (batch, steps, 1, hidden).
Operand Sequence(LowerContext& c, const RecurrentForm& form, std::vector<Operand> outputs) {
  const int64_t images = form.batch_first ? form.batch : 1;
  const Dims one = MakeDims(images, 1, form.batch / images, form.hidden);
  for (Operand& h : outputs) {
    h = ReshapeToDims(c, h, one);
  }
  Operand y = JoinedInGroups(c, std::move(outputs), Axis::kC);
  return ReshapeToDims(c, y,
                       form.batch_first ? MakeDims(form.batch, form.steps, 1, form.hidden)
                                        : MakeDims(form.steps, 1, form.batch, form.hidden));
}

// Outputs the last states of all directions: (directions, batch, hidden), or (batch, directions,
// hidden).
absl::Status OutState(LowerContext& c, const RecurrentForm& form, ValueId to,
                      std::vector<Operand> states) {
  const int64_t images = form.batch_first ? form.batch : 1;
  for (Operand& state : states) {
    state = ReshapeToDims(c, state, MakeDims(images, 1, form.batch / images, form.hidden));
  }
  Operand y = Concatenated(c, std::move(states), Axis::kC);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(to));
  y = ReshapeToDims(c, y, PlaceShape(shape));
  return c.Out(to, y);
}

absl::Status LowerAs(const Match& match, bool is_loop, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(RecurrentForm form, ReadRecurrentForm(node, c));
  if (is_loop && (form.batch_first || form.steps == 1)) {
    return c.NotLowered("a loop of this form");
  }
  const bool reads_all = IsRead(c.view(), node, 0), reads_cell = IsRead(c.view(), node, 2);
  std::vector<Operand> sequences, hidden, cells;
  for (int64_t i = 0; i < form.directions; ++i) {
    Direction direction(c, node, form, i);
    RecurrentState state;
    if (is_loop) {
      Operand outputs;
      ANEMONE_RETURN_IF_ERROR(direction.Loop(reads_cell, outputs, state));
      sequences.push_back(
          ReshapeToDims(c, outputs, MakeDims(form.steps, 1, form.batch, form.hidden)));
    } else {
      std::vector<Operand> outputs;
      ANEMONE_RETURN_IF_ERROR(direction.Unroll(outputs, state));
      if (reads_all) {
        Operand y = Sequence(c, form, std::move(outputs));
        sequences.push_back(y);
      }
    }
    hidden.push_back(*state.h);
    if (state.c) cells.push_back(*state.c);
  }
  if (reads_all) {
    Operand y = Concatenated(c, std::move(sequences), form.batch_first ? Axis::kH : Axis::kC);
    ANEMONE_RETURN_IF_ERROR(c.Out(node.outputs[0], y));
  }
  if (IsRead(c.view(), node, 1)) {
    ANEMONE_RETURN_IF_ERROR(OutState(c, form, node.outputs[1], std::move(hidden)));
  }
  if (reads_cell) {
    ANEMONE_RETURN_IF_ERROR(OutState(c, form, node.outputs[2], std::move(cells)));
  }
  return absl::OkStatus();
}

absl::Status Lower(const Match& match, LowerContext& c) { return LowerAs(match, false, c); }
absl::Status LowerToLoop(const Match& match, LowerContext& c) { return LowerAs(match, true, c); }

// The number of weights, times steps, times batch.
int64_t Macs(const Graph& graph, const Node& node) {
  std::vector<int64_t> x = graph.values[node.inputs[0]].dims();
  int64_t weights = 0;
  for (int i : {1, 2}) {
    int64_t elements = 1;
    for (int64_t e : graph.values[node.inputs[i]].dims()) elements *= e;
    weights += elements;
  }
  return x.size() == 3 ? x[0] * x[1] * weights : 0;
}

constexpr Lowering kLowerings[] = {
    {.op = "LSTM", .rewritten = true, .lower = Lower, .macs = Macs},
    {.op = "GRU", .rewritten = true, .lower = Lower, .macs = Macs},
    {.op = "RNN", .rewritten = true, .lower = Lower, .macs = Macs},
};

}  // namespace

KernelRows RecurrentRows() { return {{}, kLowerings}; }

const Lowering* LoopOf(const Lowering& row) {
  static constexpr Lowering kLoops[] = {
      {.op = "LSTM", .rewritten = true, .lower = LowerToLoop},
      {.op = "GRU", .rewritten = true, .lower = LowerToLoop},
      {.op = "RNN", .rewritten = true, .lower = LowerToLoop},
  };
  return row.lower == Lower ? &RowNamed(row.op, kLoops) : nullptr;
}

}  // namespace anemone
