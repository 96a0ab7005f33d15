// provider/training/step_runner.h: runs a training step: as one model, or as two if the update is
// for the CPU.
#ifndef ANEMONE_PROVIDER_TRAINING_STEP_RUNNER_H_
#define ANEMONE_PROVIDER_TRAINING_STEP_RUNNER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/session.h"
#include "importer/training/training_step.h"

namespace anemone {

class StepRunner {
 public:
  // `step_model` is StepModel() of the step. `settings.dims` and `settings.shapes` must be empty:
  // the sizes of a step are known.
  static absl::StatusOr<StepRunner> Make(const TrainingStep& step, absl::string_view step_model,
                                         const Settings& settings);

  // Takes all inputs of the step and returns all its outputs.
  absl::StatusOr<std::map<std::string, Tensor>> Run(
      const std::map<std::string, Tensor>& inputs) const;

  // The part on the target: all of the step, except an update on the CPU.
  const Session& session() const { return session_; }

 private:
  explicit StepRunner(Session session) : session_(std::move(session)) {}

  Session session_;
  std::optional<Session> update_;
};

// The step as the bytes of an ONNX model.
absl::StatusOr<std::string> StepModel(const Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_TRAINING_STEP_RUNNER_H_
