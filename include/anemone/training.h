// anemone/training.h: what a user can choose about how a model is trained (anemone/trainer.h,
// docs/training.md).
//
//   anemone::TrainingOptions options = {.loss = "cross-entropy:logits:labels", .batch = 32};
//   options.optimizer = "sgd";
#ifndef ANEMONE_TRAINING_H_
#define ANEMONE_TRAINING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "anemone/tensor.h"

namespace anemone {

struct TrainingOptions {
  // "cross-entropy:LOGITS:LABELS", "mse:OUTPUT:TARGET" or "output:NAME". LOGITS, OUTPUT and NAME
  // are outputs of the model. LABELS and TARGET become inputs, if the model has none of that name.
  // Labels are class numbers, int64, or shares of each class, with the sizes of the logits.
  std::string loss;
  // The types and sizes of LABELS or TARGET, by name, where they are known. Default: class numbers
  // of all axes of the logits but the last, a target like the output. A first size of -1 is the
  // batch.
  struct Target {
    DataType type = DataType::kUndefined;
    std::vector<int64_t> dims;
  };
  std::map<std::string, Target> targets;

  // "sgd", "adam", "adamw", or "none": the step's outputs are the gradients, without an update.
  std::string optimizer = "adam";
  double learning_rate = 0.001;
  double momentum = 0.9;       // sgd
  double beta1 = 0.9;          // adam, adamw
  double beta2 = 0.999;        // adam, adamw
  double epsilon = 1e-8;       // adam, adamw; on the engine at least about 2^-7 / loss_scale
  double weight_decay = 0.01;  // adamw

  // Binds the first dimension of every input that is free there; 0 binds nothing.
  int64_t batch = 0;
  // Names of weights with `*` and `?`, separated by commas; "" trains every weight.
  std::string train_only;
  // The loss is multiplied by this number before gradients are computed, so that small ones do not
  // vanish in fp16; the update divides it out, or it cancels (adam). 1 to 32768.
  double loss_scale = 1024;
  int accumulate = 1;    // one update for the gradients of this number of runs
  double clip = 0;       // the largest norm of all gradients together; 0: any
  bool sanitize = true;  // a gradient that is not a number becomes 0, infinity becomes 65504
  // Weights are fp16 on the engine. With `pair`, each has a second fp16 number that keeps what the
  // rounding of updates would lose.
  bool pair = true;
  // The update and the gradients of weights are computed on the CPU, in fp32.
  bool update_on_cpu = false;
};

}  // namespace anemone

#endif  // ANEMONE_TRAINING_H_
