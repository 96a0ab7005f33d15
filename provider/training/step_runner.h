// provider/training/step_runner.h: runs a training step: as one model, or as two if the update is
// for the CPU. It keeps the states between runs as a session does (Settings::state): in surfaces of
// the engine, or as tensors if the CPU updates them.
#ifndef ANEMONE_PROVIDER_TRAINING_STEP_RUNNER_H_
#define ANEMONE_PROVIDER_TRAINING_STEP_RUNNER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/session.h"
#include "importer/training/training_step.h"

namespace anemone {

class StepRunner {
 public:
  // `step_model` is StepModel() of the step. `settings.dims` and `settings.shapes` must be empty:
  // the sizes of a step are known. The states have their first values.
  static absl::StatusOr<StepRunner> Make(const TrainingStep& step, absl::string_view step_model,
                                         const Settings& settings);

  // Takes the inputs of the step that are not states, and returns the outputs that are not. If it
  // fails, the states are as before.
  absl::StatusOr<std::map<std::string, Tensor>> Run(
      const std::map<std::string, Tensor>& inputs) const;

  // A state, by the name of its input: a copy. SetState() wants its type and sizes.
  absl::StatusOr<Tensor> State(const std::string& input) const { return keeper().ReadState(input); }
  absl::Status SetState(const std::string& input, const Tensor& value) {
    return keeper().WriteState(input, value);
  }

  // The part on the target: all of the step, except an update on the CPU.
  const Session& session() const { return session_; }

 private:
  explicit StepRunner(Session session) : session_(std::move(session)) {}
  absl::Status Begin(const TrainingStep& step);

  // The part that makes the next values of the states.
  const Session& keeper() const { return update_ ? *update_ : session_; }
  Session& keeper() { return update_ ? *update_ : session_; }

  Session session_;
  std::optional<Session> update_;
  std::vector<std::string> read_first_;  // states that session_ reads and update_ keeps
};

// The step as the bytes of an ONNX model.
absl::StatusOr<std::string> StepModel(const Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_TRAINING_STEP_RUNNER_H_
