// importer/training/losses.h: the losses of a training step, with their own gradients.
#ifndef ANEMONE_IMPORTER_TRAINING_LOSSES_H_
#define ANEMONE_IMPORTER_TRAINING_LOSSES_H_

#include <string>

#include "absl/status/statusor.h"
#include "importer/gradients/graph_writer.h"
#include "importer/graph.h"
#include "importer/training/training_step.h"

namespace anemone {

// TrainingOptions::loss, where the names are outputs of `graph`.
struct LossForm {
  enum Kind { kCrossEntropy, kMeanSquare, kOutput } kind = kOutput;
  std::string output, target;
};
absl::StatusOr<LossForm> ParseLoss(const std::string& text, const Graph& graph);

struct Loss {
  ValueId value = kNone;  // the loss, [1]
  ValueId by = kNone;     // the output of the model
  ValueId seed = kNone;   // the derivative of scale x loss by it
  int64_t classes = 0;    // of class numbers
};

// Adds the nodes, and the target as an input if there is no input of its name.
absl::StatusOr<Loss> WriteLoss(GraphWriter& w, const LossForm& form,
                               const TrainingOptions& options);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_TRAINING_LOSSES_H_
