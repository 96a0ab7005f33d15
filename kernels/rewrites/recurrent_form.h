// kernels/rewrites/recurrent_form.h: the attributes, shapes and weights of an LSTM, GRU or RNN
// node.
#ifndef ANEMONE_KERNELS_REWRITES_RECURRENT_FORM_H_
#define ANEMONE_KERNELS_REWRITES_RECURRENT_FORM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/activation/neuron.h"
#include "kernels/lowering.h"
#include "kernels/rewrites/recurrent_steps.h"

namespace anemone {

struct RecurrentForm {
  RecurrentCell cell = RecurrentCell::kRnn;
  int64_t gates = 1;  // rows of a weight are this many times `hidden`
  int64_t steps = 1, batch = 1, inputs = 1, hidden = 1, directions = 1;
  bool backwards = false;  // of the first direction
  bool batch_first = false, linear_before_reset = false;
  std::vector<NeuronType> functions;  // of the first direction, then of the second
};

// Refuses forms that are not unrolled. kInvalidArgument if the node is not valid ONNX.
absl::StatusOr<RecurrentForm> ReadRecurrentForm(const Node& node, LowerContext& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_RECURRENT_FORM_H_
