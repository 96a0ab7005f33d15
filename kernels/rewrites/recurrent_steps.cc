#include "kernels/rewrites/recurrent_steps.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "anemone/compressed.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"

namespace anemone {
namespace {

// Adds units to `c`. Intermediate values are (batch, gates * hidden, 1, 1).
class Stepper {
 public:
  Stepper(NetworkBuilder& c, const RecurrentStep& step, const RecurrentWeights& weights)
      : c_(c), step_(step), weights_(weights) {}

  void Add(const Operand& x, RecurrentState& state) {
    switch (step_.cell) {
      case RecurrentCell::kLstm:
        return AddLstm(x, state);
      case RecurrentCell::kGru:
        return AddGru(x, state);
      case RecurrentCell::kRnn:
        break;
    }
    Operand h = Added(x, StateGates(state.h, 0, 1));
    state.h = Activated(c_, step_.f, h);
  }

 private:
  Operand Gate(const Operand& gates, int64_t first, int64_t count = 1) {
    return Sliced(c_, gates, Axis::kC, first * step_.hidden, count * step_.hidden);
  }

  // h * R + Rb for `count` gates from gate `first` on; nullopt if that is zero.
  std::optional<Operand> StateGates(const std::optional<Operand>& h, int64_t first, int64_t count) {
    const int64_t rows = count * step_.hidden, skipped = first * step_.hidden;
    std::optional<Tensor> bias;
    if (weights_.bias) bias = PartOf(*weights_.bias, skipped, {rows});
    if (!h && !bias) return std::nullopt;
    if (!h) return c_.AddConstant(*bias, MakeDims(1, rows, 1, 1));
    Tensor r = PartOf(weights_.r, skipped * step_.hidden, {rows, step_.hidden});
    return PointwiseConv(c_, *h, rows, r, /*in_major=*/false, bias ? &*bias : nullptr);
  }

  Operand Added(const Operand& x, const std::optional<Operand>& y) {
    return y ? Combined(c_, ElementWiseType::kAdd, x, *y) : x;
  }

  // Gates i, o, f, c: c' = f * c + i * g(c), h' = o * h(c').
  void AddLstm(const Operand& x, RecurrentState& state) {
    Operand gates = Added(x, StateGates(state.h, 0, 4));
    Operand opened = Gate(gates, 0, 3);
    opened = Activated(c_, step_.f, opened);
    Operand cell = Gate(gates, 3);
    cell = Activated(c_, step_.g, cell);
    Operand in = Gate(opened, 0);
    cell = Combined(c_, ElementWiseType::kMult, cell, in);
    if (state.c) {
      Operand kept = Gate(opened, 2);
      kept = Combined(c_, ElementWiseType::kMult, *state.c, kept);
      cell = Combined(c_, ElementWiseType::kAdd, kept, cell);
    }
    state.c = cell;
    Operand out = Gate(opened, 1);
    Operand h = Activated(c_, step_.h, cell);
    state.h = Combined(c_, ElementWiseType::kMult, h, out);
  }

  // Gates z, r, h: h' = n + z * (h - n). The proposed state n is the tanh of the sum of the input's
  // and the state's contributions. The reset gate r multiplies the state before its product with R,
  // or, with linear_before_reset, the result of that product.
  void AddGru(const Operand& x, RecurrentState& state) {
    const bool linear = step_.linear_before_reset;
    const std::optional<Operand> recurrent = StateGates(state.h, 0, linear ? 3 : 2);
    Operand opened = Gate(x, 0, 2);
    if (recurrent) {
      Operand part = Gate(*recurrent, 0, 2);
      opened = Combined(c_, ElementWiseType::kAdd, opened, part);
    }
    opened = Activated(c_, step_.f, opened);
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
      proposed = StateGates(kept, 2, 1);
    }
    Operand n = Gate(x, 2);
    n = Added(n, proposed);
    n = Activated(c_, step_.g, n);
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
  }

  NetworkBuilder& c_;
  const RecurrentStep& step_;
  const RecurrentWeights& weights_;
};

// The units that a step became, with what they read and compute.
struct StepUnits {
  int first = 0;
  Operand x;
  RecurrentState before;
  int end = 0;
  RecurrentState after;
};

int NumberOfUnits(const NetworkBuilder& c) { return static_cast<int>(c.network().units.size()); }

// Appends copies of the units of a step that read another input and another state. Copies share
// their parameters, so that each unit is checked once (engine/repeats.h).
void Repeat(NetworkBuilder& c, const StepUnits& step, const Operand& x, RecurrentState& state) {
  const int shift = NumberOfUnits(c) - step.first;
  const RecurrentState before = state;
  const auto moved = [&](const Operand& operand) {
    if (operand == step.x) return x;
    if (operand == step.before.h) return *before.h;
    if (operand == step.before.c) return *before.c;
    Operand copy = operand;
    if (copy.source == Operand::Source::kUnit && copy.index >= step.first) copy.index += shift;
    return copy;
  };
  for (int i = step.first; i < step.end && c.ok(); ++i) {
    const Unit unit = c.network().units[i];
    std::vector<Operand> bottoms = unit.bottoms;
    std::transform(bottoms.begin(), bottoms.end(), bottoms.begin(), moved);
    c.AddUnit(*unit.kind, unit.params, std::move(bottoms), unit.weights);
  }
  state.h = moved(*step.after.h);
  if (step.after.c) state.c = moved(*step.after.c);
}

}  // namespace

absl::Span<const char* const> NamesOf(RecurrentCell) {
  static constexpr const char* kNames[] = {"RNN", "GRU", "LSTM"};
  return kNames;
}

int64_t RecurrentStep::gates() const {
  if (cell == RecurrentCell::kLstm) return 4;
  return cell == RecurrentCell::kGru ? 3 : 1;
}

Tensor PartOf(const Tensor& tensor, int64_t first, std::vector<int64_t> dims) {
  if (tensor.is_fill()) return Tensor::Fill(tensor.type(), std::move(dims), tensor.bytes());
  const int64_t bytes = ByteSize(tensor.type(), dims), each = BitsOf(tensor.type()) / 8;
  // The steps share one owner, so that the weights are packed once (engine/constant_id.h). The
  // bytes of a compressed tensor belong to the tensor itself.
  std::shared_ptr<const void> owner = tensor.owner();
  if (const Compressed* stored = tensor.compressed(); stored != nullptr) {
    if (Compressed::Ptr part = stored->Part(first, bytes / each)) {
      return Tensor::Of(std::move(dims), std::move(part));
    }
    owner = std::make_shared<const Tensor>(tensor);
  }
  return Tensor::View(tensor.type(), std::move(dims), tensor.bytes().subspan(first * each, bytes),
                      std::move(owner));
}

void AddStep(NetworkBuilder& c, const RecurrentStep& step, const RecurrentWeights& weights,
             const Operand& x, RecurrentState& state) {
  Stepper(c, step, weights).Add(x, state);
}

std::vector<Operand> AddSteps(NetworkBuilder& c, const RecurrentStep& step,
                              const RecurrentWeights& weights, const Operand& inputs,
                              const StepOrder& order, RecurrentState& state) {
  std::vector<Operand> outputs(order.steps);
  std::optional<StepUnits> made;  // of a step with a whole state; only the first may have none
  for (int64_t i = 0; i < order.steps && c.ok(); ++i) {
    const int64_t at = order.backwards ? order.steps - 1 - i : i;
    if (i < order.most) {
      const Operand x = Sliced(c, inputs, Axis::kC, at, 1);
      if (made) {
        Repeat(c, *made, x, state);
      } else {
        const StepUnits units{NumberOfUnits(c), x, state};
        AddStep(c, step, weights,
                ReshapeToDims(c, x, MakeDims(step.batch, step.gates() * step.hidden, 1, 1)), state);
        if (units.before.IsWhole(step) && units.before.h != units.before.c) {
          made = {units.first, units.x, units.before, NumberOfUnits(c), state};
        }
      }
    }
    outputs[at] = *state.h;
  }
  return outputs;
}

Operand JoinedInGroups(NetworkBuilder& c, std::vector<Operand> parts, Axis axis) {
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

}  // namespace anemone
