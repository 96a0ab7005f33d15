// anemone/trainer.h: trains an ONNX model on one target. The engine has no backward operation; a
// step of training is one graph of forward operations, made from the model and a loss, and runs as
// any other model (docs/training.md).
//
//   auto trainer = anemone::Trainer::Load(
//       "net.onnx", {.loss = "cross-entropy:logits:labels", .learning_rate = 0.01, .batch = 32});
//   if (!trainer.ok()) return Fail(trainer.status());      // which node has no gradient, and why
//   auto loss = trainer->Step({{"x", images}, {"labels", labels}});   // the mean loss of the batch
//   auto saved = trainer->SaveModel("trained.onnx");       // the model with its new weights
//
// The same data in the same order gives the same weights, bit for bit, also after a checkpoint.
// Functions must not be called at the same time from several threads.
#ifndef ANEMONE_TRAINER_H_
#define ANEMONE_TRAINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/session.h"
#include "anemone/settings.h"
#include "anemone/tensor.h"
#include "anemone/training.h"

namespace anemone {

class Trainer {
 public:
  // Errors: those of Session::Load(); kInvalidArgument for a node without a gradient, or a free
  // dimension.
  static absl::StatusOr<Trainer> Load(const std::string& path, const TrainingOptions& options,
                                      const Settings& settings = {});
  // The same from memory, which is borrowed until LoadBytes returns; external data is refused.
  static absl::StatusOr<Trainer> LoadBytes(absl::string_view model, const TrainingOptions& options,
                                           const Settings& settings = {});

  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  // What Step() takes: the model's inputs, and the labels or the target.
  const std::vector<PortInfo>& inputs() const;
  // The names of the weights that are trained.
  std::vector<std::string> weights() const;
  // A weight as float32. kNotFound: no such weight is trained.
  absl::StatusOr<Tensor> Weight(const std::string& name) const;

  // One run with a batch; returns its mean loss. With `accumulate`, each group of that number of
  // runs updates the weights once, at its end. Errors: kInvalidArgument (an input that is missing
  // or does not fit, a class number that is not a class), or those of Session::Run(); nothing has
  // changed then.
  absl::StatusOr<double> Step(const std::map<std::string, Tensor>& inputs);
  int64_t runs() const;  // completed since the start, also before a checkpoint
  // The weights whose scaled gradient exceeded fp16 in the last Step(), which used 65504 for an
  // infinity and 0 for a NaN: lower `loss_scale`. Empty if the loss was not finite.
  const std::vector<std::string>& LimitedGradients() const;
  // A sentence that tells of them; "" if there are none.
  std::string GradientWarning() const;
  // kInvalidArgument: it is negative or not finite.
  absl::Status set_learning_rate(double rate);

  // Writes the state of the training to one file (safetensors), atomically. `notes` are kept with
  // it.
  absl::Status SaveCheckpoint(const std::string& path,
                              const std::map<std::string, std::string>& notes = {}) const;
  // Goes on from a checkpoint of the same model and options; returns its notes. Errors: kNotFound,
  // kDataLoss (damaged), kFailedPrecondition (of another model, or other options).
  absl::StatusOr<std::map<std::string, std::string>> LoadCheckpoint(const std::string& path);

  // The model of Load() with the new weights, in their types; external data is written into it.
  absl::StatusOr<std::string> ModelBytes() const;
  absl::Status SaveModel(const std::string& path) const;  // atomic

  // The step as an ONNX model: its inputs and outputs, and how they are paired, are in
  // docs/training.md.
  const std::string& StepBytes() const;
  std::string PlanLine() const;  // as Session's
  std::string PlanText(bool every_node = false, int width = 80) const;
  std::string PlanJson() const;
  PlanSummary Summary() const;
  // Warnings of the steps so far, as Session's: values that fp16 cannot hold.
  std::vector<std::string> RunWarnings() const;

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace anemone

#endif  // ANEMONE_TRAINER_H_
