// provider/weights/current_model.h: the model that a session runs, which UpdateWeights() replaces
// while runs go on. A run keeps the model that was current when it began.
//
//   ANEMONE_RETURN_IF_ERROR(current.UpdateWeights({{"conv1.weight", tensor}}));
//   const std::shared_ptr<const LoadedModel> model = current.Get();
#ifndef ANEMONE_PROVIDER_WEIGHTS_CURRENT_MODEL_H_
#define ANEMONE_PROVIDER_WEIGHTS_CURRENT_MODEL_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "base/own_process.h"
#include "importer/new_weights.h"
#include "provider/adapters/adapters.h"
#include "provider/growing.h"
#include "provider/load_setup.h"
#include "provider/loaded_model.h"
#include "provider/state_pairs.h"
#include "provider/weights/run_gate.h"

namespace anemone {

// Thread-safe.
class CurrentModel {
 public:
  // `model` is of `setup`. kInvalidArgument: an adapter does not fit it.
  static absl::StatusOr<std::shared_ptr<CurrentModel>> Make(
      const LoadSetup& setup, std::shared_ptr<const LoadedModel> model);
  ~CurrentModel();
  CurrentModel(const CurrentModel&) = delete;
  CurrentModel& operator=(const CurrentModel&) = delete;

  // The programs do not change while the caller holds the model.
  std::shared_ptr<const LoadedModel> Get() const;

  // The model with the programs of a state that grows, which may be null. They do not change while
  // the caller has `hold`.
  struct All {
    std::shared_ptr<const LoadedModel> model;
    std::shared_ptr<Growing> growing;
    std::shared_ptr<const void> hold;
  };
  All GetAll() const;
  // Before the session runs: what it keeps between runs.
  void Keep(std::vector<StatePair> pairs);

  // kFailedPrecondition in a child that fork() made.
  absl::Status CheckProcess() const { return process_.Check("session"); }

  // With the values of their inputs.
  const Adapters& adapters() const { return adapters_; }
  const Settings& settings() const { return setup_.settings; }
  double time_limit() const { return setup_.settings.time_limit; }
  // Of the model without adapters. New weights change no port.
  const std::vector<PortInfo>& inputs() const { return inputs_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }

  // As Session::UpdateWeights(). Copies the tensors. One update at a time.
  absl::Status UpdateWeights(const NewWeights& weights);

 private:
  CurrentModel(LoadSetup setup, Adapters adapters, std::shared_ptr<const LoadedModel> model);

  const OwnProcess process_;
  const Adapters adapters_;
  const std::vector<PortInfo> inputs_, outputs_;
  const LoadSetup setup_;  // of the file's weights

  std::vector<StatePair> pairs_;
  std::mutex updating_;                                                         // guards weights_
  std::shared_ptr<const NewWeights> weights_ = std::make_shared<NewWeights>();  // of all updates

  // Null if the device never changes programs in place.
  const std::shared_ptr<RunGate> gate_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const LoadedModel> model_;
  std::shared_ptr<Growing> growing_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_CURRENT_MODEL_H_
