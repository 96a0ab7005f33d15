// importer/training/training_step.h: a step of training as one ONNX graph, made from a forward
// model and a loss. Its inputs are the data of the batch, a few numbers (the learning rate), the
// weights and the optimizer's moments; its outputs are the loss, and the new weights and moments.
//
//   ANEMONE_ASSIGN_OR_RETURN(const TrainingStep step,
//                            MakeTrainingStep(model, {.loss = "mse:y:target"}, evaluate));
//   std::map<std::string, Tensor> inputs = step.Numbers(/*run=*/0, /*learning_rate=*/0.001);
//   for (const StepState& state : step.states) inputs[state.input] = state.first;
//
// With the data of a batch, these are the inputs of the first run. In the next one, each state has
// the value of its output.
//
// Gradients are forward nodes (importer/gradients/gradient.h), so the step is planned, compiled and
// run as any other model.
#ifndef ANEMONE_IMPORTER_TRAINING_TRAINING_STEP_H_
#define ANEMONE_IMPORTER_TRAINING_TRAINING_STEP_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/training.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// A value that is kept from one run to the next.
struct StepState {
  std::string input, output;  // names
  Tensor first;               // its value before the first step
};

// One trained weight, by indices of TrainingStep::states.
struct TrainedWeight {
  std::string name;  // of the forward model
  int value = -1;
  int rest = -1;  // of a pair, or -1
};

struct TrainingStep {
  Model model;
  TrainingOptions options;
  std::string loss;  // the output with the loss, float32[1]; the mean of the batch, not scaled
  // The output with the largest magnitude of each weight's scaled gradient, float32[weights]; ""
  // for optimizer "none". 65504, the largest number of fp16, means that the gradient is not right.
  std::string peaks;
  std::vector<TrainedWeight> weights;  // in the order of the model's inputs
  std::vector<StepState> states;
  std::map<std::string, std::string> gradients;  // optimizer "none": weight -> output
  // The class numbers of cross entropy must be 0 to classes - 1; the step does not check them.
  std::string labels;
  int64_t classes = 0;
  // The nodes that compute the gradients of weights and the update, if
  // TrainingOptions::update_on_cpu.
  std::vector<NodeId> update;

  // The inputs of one number each at run `run` (from 0; `accumulate` runs are one step).
  std::map<std::string, Tensor> Numbers(int64_t run, double learning_rate) const;
};

// A weight's elements as float32, from the values of its states; `rest` may be null.
Tensor WholeWeight(const Tensor& value, const Tensor* rest);

// `model` is imported with ImportOptions::simplify false; its free dimensions must be bound.
//
// Trained by default: float initializers of at least two elements, or that a product or convolution
// reads, without an element beyond 1e4 (such a constant is a mask), if the loss depends on them.
//
// Numbers of fp16: scaled gradients beyond 255 count as 255 in Adam's second moment, which is at
// least 2^-14 in the square root; so epsilon is at least about 2^-7 / loss_scale.
//
// Errors: kInvalidArgument for an operator without a gradient (it names the node and the reason)
// and for a free dimension; a UsageError for an option that does not fit the model.
absl::StatusOr<TrainingStep> MakeTrainingStep(Model model, const TrainingOptions& options,
                                              const Evaluator& evaluate);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_TRAINING_TRAINING_STEP_H_
