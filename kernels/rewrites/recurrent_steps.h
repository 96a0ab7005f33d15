// kernels/rewrites/recurrent_steps.h: the units of the steps of an LSTM, GRU or RNN.
//
// The contribution of the inputs to all gates is one product for all steps. Each step adds the
// contribution of the state, a 1x1 convolution with bias over a batch of states (batch, hidden, 1,
// 1), and splits the gates along the channels. All intermediate values are fp16, so a step adds an
// error of a few ulps to a state of magnitude 1. The error fades as the state is overwritten.
#ifndef ANEMONE_KERNELS_REWRITES_RECURRENT_STEPS_H_
#define ANEMONE_KERNELS_REWRITES_RECURRENT_STEPS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "anemone/tensor.h"
#include "engine/network_builder.h"
#include "kernels/activation/neuron.h"

namespace anemone {

// A step has up to 18 units, so this allows about a thousand units. Only networks of some tens of
// units were seen to compile (netplist.md). Longer sequences are better computed by the loop on the
// CPU.
inline constexpr int64_t kMostRecurrentSteps = 64;

enum class RecurrentCell : uint8_t { kRnn, kGru, kLstm };
absl::Span<const char* const> NamesOf(RecurrentCell);

// What one step computes.
struct RecurrentStep {
  RecurrentCell cell = RecurrentCell::kRnn;
  int64_t batch = 1, hidden = 1;
  bool linear_before_reset = false;
  NeuronType f = NeuronType::kTanh, g = NeuronType::kTanh, h = NeuronType::kTanh;  // as ONNX's

  // The rows of a weight are this many times `hidden`.
  int64_t gates() const;
  bool has_cell() const { return cell == RecurrentCell::kLstm; }
};

// Those of the state: (gates * hidden, hidden) and (gates * hidden).
struct RecurrentWeights {
  Tensor r;
  std::optional<Tensor> bias;
};

// The state of a cell, each value (batch, hidden, 1, 1). nullopt stands for zeros.
struct RecurrentState {
  std::optional<Operand> h, c;
  // Whether all values that the step computes are there.
  bool IsWhole(const RecurrentStep& step) const { return h && (!step.has_cell() || c); }
};

// The elements from `first` on, in the shape `dims`, as a view that does not copy the constant.
Tensor PartOf(const Tensor& tensor, int64_t first, std::vector<int64_t> dims);

// Adds the units of one step. `x` is (batch, gates * hidden, 1, 1).
void AddStep(NetworkBuilder& c, const RecurrentStep& step, const RecurrentWeights& weights,
             const Operand& x, RecurrentState& state);

struct StepOrder {
  int64_t steps = 1;
  bool backwards = false;
  // The units of this many steps are added; later steps are taken to be the last of them. A network
  // in which the values do not matter needs no more than 2.
  int64_t most = std::numeric_limits<int64_t>::max();
};

// Adds the units of all steps. `inputs` has a step at each place of its channels. Returns the
// output of every step, in the order of the sequence, and the last state.
std::vector<Operand> AddSteps(NetworkBuilder& c, const RecurrentStep& step,
                              const RecurrentWeights& weights, const Operand& inputs,
                              const StepOrder& order, RecurrentState& state);

// Concatenates the parts, at most kMostPieces with one unit.
Operand JoinedInGroups(NetworkBuilder& c, std::vector<Operand> parts, Axis axis);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_RECURRENT_STEPS_H_
