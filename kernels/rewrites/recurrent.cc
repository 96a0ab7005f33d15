// LSTM, GRU and RNN, for which no target has a unit (op_matrix.json: "unroll a fixed number of
// steps into conv/matmul/activation"). The steps are unrolled into units.
//
// The contribution of the inputs to all gates is one product for all steps. Each step adds the
// contribution of the state, a 1x1 convolution with bias over a batch of states (batch, hidden, 1,
// 1), and splits the gates along the channels. All intermediate values are fp16, so a step adds an
// error of a few ulps to a state of magnitude 1. The error fades as the state is overwritten.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/activation/neuron.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/rewrites/recurrent_form.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"
#include "kernels/units/linear.h"
#include "kernels/units/reshape.h"

namespace anemone {
namespace {

// The elements from `first` on, in the shape `dims`, as a view that does not copy the constant.
Tensor PartOf(const Tensor& tensor, int64_t first, std::vector<int64_t> dims) {
  if (tensor.is_fill()) return Tensor::Fill(tensor.type(), std::move(dims), tensor.bytes());
  const int64_t bytes = ByteSize(tensor.type(), dims), each = BitsOf(tensor.type()) / 8;
  // The steps share one owner, so that the weights are packed once (engine/constant_id.h). The
  // bytes of a compressed tensor belong to the tensor itself.
  std::shared_ptr<const void> owner = tensor.owner();
  if (tensor.compressed() != nullptr) owner = std::make_shared<const Tensor>(tensor);
  return Tensor::View(tensor.type(), std::move(dims), tensor.bytes().subspan(first * each, bytes),
                      std::move(owner));
}

// The constants of one direction.
struct Weights {
  Tensor w, r;
  std::optional<Tensor> w_bias, r_bias;
};

Weights WeightsOf(const Node& node, LowerContext& c, const RecurrentForm& form, int64_t direction) {
  const int64_t rows = form.gates * form.hidden;
  Weights weights;
  weights.w = PartOf(*c.view().Constant(node.inputs[1]), direction * rows * form.inputs,
                     {rows, form.inputs});
  weights.r = PartOf(*c.view().Constant(node.inputs[2]), direction * rows * form.hidden,
                     {rows, form.hidden});
  if (HasInput(node, 3)) {
    const Tensor& b = *c.view().Constant(node.inputs[3]);
    weights.w_bias = PartOf(b, direction * 2 * rows, {rows});
    weights.r_bias = PartOf(b, direction * 2 * rows + rows, {rows});
  }
  return weights;
}

bool IsZero(const Tensor& tensor) {
  std::vector<float> values = RoundedFloats(tensor.is_fill() ? PartOf(tensor, 0, {1}) : tensor);
  return std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

// The state of a cell, each value (batch, hidden, 1, 1). nullopt stands for zeros.
struct State {
  std::optional<Operand> h, c;
};

// Unrolls one direction of one node. Intermediate values are (batch, gates * hidden, 1, 1).
class Unroller {
 public:
  Unroller(LowerContext& c, const Node& node, const RecurrentForm& form, int64_t direction)
      : c_(c),
        node_(node),
        form_(form),
        direction_(direction),
        weights_(WeightsOf(node, c, form, direction)) {}

  // Returns the output of every step, in the order of the sequence, and the last state.
  absl::Status Run(std::vector<Operand>& outputs, State& state) {
    ANEMONE_ASSIGN_OR_RETURN(state.h, Initial(5));
    if (form_.cell == RecurrentCell::kLstm) {
      ANEMONE_ASSIGN_OR_RETURN(state.c, Initial(6));
    }
    Operand inputs = InputGates();
    const bool backwards = direction_ == 1 || form_.backwards;
    outputs.resize(form_.steps);
    std::optional<StepUnits> made;  // of a step with a state; only the first may have none
    for (int64_t i = 0; i < form_.steps; ++i) {
      const int64_t step = backwards ? form_.steps - 1 - i : i;
      const Operand x = Sliced(c_, inputs, Axis::kC, step, 1);
      if (made) {
        Repeat(*made, x, state);
      } else {
        const StepUnits units{NumberOfUnits(), x, state};
        ANEMONE_RETURN_IF_ERROR(Step(AsState(x, form_.gates), state));
        if (units.before.h) made = {units.first, units.x, units.before, NumberOfUnits(), state};
      }
      outputs[step] = *state.h;
    }
    return absl::OkStatus();
  }

 private:
  // The units that a step became, with what they read and compute.
  struct StepUnits {
    int first = 0;
    Operand x;
    State before;
    int end = 0;
    State after;
  };

  int NumberOfUnits() const { return static_cast<int>(c_.network().units.size()); }

  // Appends copies of the units of a step that read another input and another state. Copies share
  // their parameters, so that each unit is checked once (engine/repeats.h).
  void Repeat(const StepUnits& step, const Operand& x, State& state) {
    const int shift = NumberOfUnits() - step.first;
    const State before = state;
    const auto moved = [&](const Operand& operand) {
      if (operand == step.x) return x;
      if (operand == step.before.h) return *before.h;
      if (operand == step.before.c) return *before.c;
      Operand copy = operand;
      if (copy.source == Operand::Source::kUnit && copy.index >= step.first) copy.index += shift;
      return copy;
    };
    for (int i = step.first; i < step.end && c_.ok(); ++i) {
      const Unit unit = c_.network().units[i];
      std::vector<Operand> bottoms = unit.bottoms;
      std::transform(bottoms.begin(), bottoms.end(), bottoms.begin(), moved);
      c_.AddUnit(*unit.kind, unit.params, std::move(bottoms), unit.weights);
    }
    state.h = moved(*step.after.h);
    if (step.after.c) state.c = moved(*step.after.c);
  }

  NeuronType Function(int i) const {
    return form_.functions[direction_ * form_.functions.size() / form_.directions + i];
  }

  Operand AsState(const Operand& x, int64_t gates) {
    return ReshapeToDims(c_, x, MakeDims(form_.batch, gates * form_.hidden, 1, 1));
  }

  Operand Gate(const Operand& gates, int64_t first, int64_t count = 1) {
    return Sliced(c_, gates, Axis::kC, first * form_.hidden, count * form_.hidden);
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
    x = AsState(x, 1);
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

  // h * R + Rb for `count` gates from gate `first` on; nullopt if that is zero.
  absl::StatusOr<std::optional<Operand>> StateGates(const std::optional<Operand>& h, int64_t first,
                                                    int64_t count) {
    const int64_t rows = count * form_.hidden, skipped = first * form_.hidden;
    std::optional<Tensor> bias;
    if (weights_.r_bias) bias = PartOf(*weights_.r_bias, skipped, {rows});
    if (!h && !bias) return std::nullopt;
    if (!h) return std::optional<Operand>(c_.AddConstant(*bias, MakeDims(1, rows, 1, 1)));
    Tensor r = PartOf(weights_.r, skipped * form_.hidden, {rows, form_.hidden});
    Operand y = PointwiseConv(c_, *h, rows, r, /*in_major=*/false, bias ? &*bias : nullptr);
    return std::optional<Operand>(y);
  }

  Operand Added(const Operand& x, const std::optional<Operand>& y) {
    return y ? Combined(c_, ElementWiseType::kAdd, x, *y) : x;
  }

  absl::Status Step(const Operand& x, State& state) {
    switch (form_.cell) {
      case RecurrentCell::kLstm:
        return StepLstm(x, state);
      case RecurrentCell::kGru:
        return StepGru(x, state);
      case RecurrentCell::kRnn:
        break;
    }
    ANEMONE_ASSIGN_OR_RETURN(auto recurrent, StateGates(state.h, 0, 1));
    Operand h = Added(x, recurrent);
    state.h = Activated(c_, Function(0), h);
    return absl::OkStatus();
  }

  // Gates i, o, f, c: c' = f * c + i * g(c), h' = o * h(c').
  absl::Status StepLstm(const Operand& x, State& state) {
    ANEMONE_ASSIGN_OR_RETURN(auto recurrent, StateGates(state.h, 0, 4));
    Operand gates = Added(x, recurrent);
    Operand opened = Gate(gates, 0, 3);
    opened = Activated(c_, Function(0), opened);
    Operand cell = Gate(gates, 3);
    cell = Activated(c_, Function(1), cell);
    Operand in = Gate(opened, 0);
    cell = Combined(c_, ElementWiseType::kMult, cell, in);
    if (state.c) {
      Operand kept = Gate(opened, 2);
      kept = Combined(c_, ElementWiseType::kMult, *state.c, kept);
      cell = Combined(c_, ElementWiseType::kAdd, kept, cell);
    }
    state.c = cell;
    Operand out = Gate(opened, 1);
    Operand h = Activated(c_, Function(2), cell);
    state.h = Combined(c_, ElementWiseType::kMult, h, out);
    return absl::OkStatus();
  }

  // Gates z, r, h: h' = n + z * (h - n). The proposed state n is the tanh of the sum of the input's
  // and the state's contributions. The reset gate r multiplies the state before its product with R,
  // or, with linear_before_reset, the result of that product.
  absl::Status StepGru(const Operand& x, State& state) {
    const bool linear = form_.linear_before_reset;
    ANEMONE_ASSIGN_OR_RETURN(auto recurrent, StateGates(state.h, 0, linear ? 3 : 2));
    Operand opened = Gate(x, 0, 2);
    if (recurrent) {
      Operand part = Gate(*recurrent, 0, 2);
      opened = Combined(c_, ElementWiseType::kAdd, opened, part);
    }
    opened = Activated(c_, Function(0), opened);
    std::optional<Operand> proposed;
    if (linear && recurrent) {
      Operand reset = Gate(opened, 1);
      Operand part = Gate(*recurrent, 2);
      proposed = Combined(c_, ElementWiseType::kMult, part, reset);
    } else if (!linear) {
      std::optional<Operand> kept;
      if (state.h) {
        Operand reset = Gate(opened, 1);
        kept = Combined(c_, ElementWiseType::kMult, *state.h, reset);
      }
      ANEMONE_ASSIGN_OR_RETURN(proposed, StateGates(kept, 2, 1));
    }
    Operand n = Gate(x, 2);
    n = Added(n, proposed);
    n = Activated(c_, Function(1), n);
    Operand update = Gate(opened, 0);
    Operand difference;
    if (state.h) {
      difference = Combined(c_, ElementWiseType::kSub, *state.h, n);
      difference = Combined(c_, ElementWiseType::kMult, difference, update);
      state.h = Combined(c_, ElementWiseType::kAdd, n, difference);
    } else {
      difference = Combined(c_, ElementWiseType::kMult, n, update);
      state.h = Combined(c_, ElementWiseType::kSub, n, difference);
    }
    return absl::OkStatus();
  }

  LowerContext& c_;
  const Node& node_;
  const RecurrentForm& form_;
  int64_t direction_;
  Weights weights_;
};

// Concatenates the parts, at most kMostPieces with one unit.
Operand JoinedInGroups(LowerContext& c, std::vector<Operand> parts, Axis axis) {
  while (parts.size() > 1) {
    std::vector<Operand> joined;
    for (size_t i = 0; i < parts.size(); i += kMostPieces) {
      size_t end = std::min<size_t>(i + kMostPieces, parts.size());
      std::vector<Operand> group(parts.begin() + i, parts.begin() + end);
      Operand part = Concatenated(c, std::move(group), axis);
      joined.push_back(part);
    }
    parts = std::move(joined);
  }
  return parts[0];
}

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

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(RecurrentForm form, ReadRecurrentForm(node, c));
  std::vector<Operand> sequences, hidden, cells;
  for (int64_t direction = 0; direction < form.directions; ++direction) {
    std::vector<Operand> outputs;
    State state;
    ANEMONE_RETURN_IF_ERROR(Unroller(c, node, form, direction).Run(outputs, state));
    if (IsRead(c.view(), node, 0)) {
      Operand y = Sequence(c, form, std::move(outputs));
      sequences.push_back(y);
    }
    hidden.push_back(*state.h);
    if (state.c) cells.push_back(*state.c);
  }
  if (IsRead(c.view(), node, 0)) {
    Operand y = Concatenated(c, std::move(sequences), form.batch_first ? Axis::kH : Axis::kC);
    ANEMONE_RETURN_IF_ERROR(c.Out(node.outputs[0], y));
  }
  if (IsRead(c.view(), node, 1)) {
    ANEMONE_RETURN_IF_ERROR(OutState(c, form, node.outputs[1], std::move(hidden)));
  }
  if (IsRead(c.view(), node, 2)) {
    ANEMONE_RETURN_IF_ERROR(OutState(c, form, node.outputs[2], std::move(cells)));
  }
  return absl::OkStatus();
}

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

}  // namespace anemone
