// importer/training/optimizers.h: the update of a training step: from gradients to new weights and
// moments.
#ifndef ANEMONE_IMPORTER_TRAINING_OPTIMIZERS_H_
#define ANEMONE_IMPORTER_TRAINING_OPTIMIZERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "importer/gradients/graph_writer.h"
#include "importer/graph.h"
#include "importer/training/training_step.h"

namespace anemone {

// A weight whose input is the first of its states, and its gradient times
// TrainingOptions::loss_scale.
struct Gradient {
  std::string name;
  ValueId weight = kNone, gradient = kNone;
};

// Names of the inputs of one number each.
inline constexpr char kRate[] = "training/rate";      // the learning rate
inline constexpr char kDecay[] = "training/decay";    // rate times weight decay: adamw
inline constexpr char kKeep[] = "training/keep";      // 0 in the first run of a step, else 1
inline constexpr char kFirst[] = "training/first";    // share of a gradient in the mean: adam
inline constexpr char kSecond[] = "training/second";  // of its square in the variance: adam
inline constexpr char kApply[] = "training/apply";    // 1 in the last run of a step, else 0: sgd

// The rest of a weight in a pair is stored times this number, so that it is not subnormal.
inline constexpr double kRestScale = 1024;

// UsageError if an option is unknown or out of range.
absl::Status CheckOptions(const TrainingOptions& options);
absl::Status CheckLearningRate(double rate);

// Adds the update, and its states and outputs, to `step`. `first` has the weights' values.
absl::Status WriteUpdate(GraphWriter& w, const std::vector<Gradient>& gradients,
                         const std::map<ValueId, Tensor>& first, TrainingStep& step);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_TRAINING_OPTIMIZERS_H_
