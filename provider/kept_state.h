// provider/kept_state.h: the state of one session: values that a run leaves for the next
// (Settings::state). A value stays in the surfaces of the engine where that is possible
// (Scheduler::CanStay), else it is kept as a tensor.
#ifndef ANEMONE_PROVIDER_KEPT_STATE_H_
#define ANEMONE_PROVIDER_KEPT_STATE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/session.h"
#include "provider/growing.h"
#include "provider/loaded_model.h"
#include "provider/run_inputs.h"
#include "provider/scheduler.h"
#include "provider/state_pairs.h"
#include "provider/weights/current_model.h"

namespace anemone {

// Thread-safe: one run at a time.
class KeptState {
 public:
  // `pairs` are those of CurrentModel::Keep(). A run must be given the inputs of adapters too.
  KeptState(std::shared_ptr<const CurrentModel> current, std::vector<StatePair> pairs);

  // The same pairs of the same model, with zeros.
  std::unique_ptr<KeptState> Fork() const;

  // The pairs by the names of their inputs and outputs.
  std::map<std::string, std::string> PairNames() const;
  // As Session::GrowthRefusal().
  std::string GrowthRefusal() const;
  // Lines of the plan's text about the state.
  std::string Text(bool every_node, int width) const;
  // The model's ports as a user of the session sees them: an input of a pair may be left out, and
  // the output of a pair is no result.
  const std::vector<PortInfo>& inputs() const { return shown_inputs_; }
  const std::vector<PortInfo>& outputs() const { return outputs_; }

  // As LoadedModel::Run(). An input of a pair that is not given has the output's value of the last
  // successful run, at first zeros; a value that is given replaces it, even if the run fails.
  // kInvalidArgument: a size of
  // the zeros is not known.
  absl::StatusOr<NamedValues> Run(const NamedValues& given, Trace* trace);

  // `given` with the values of the pairs. No run changes them.
  absl::StatusOr<NamedValues> WithState(const NamedValues& given);

  void Reset();
  // By the name of a pair's input. kNotFound: there is no such pair. kFailedPrecondition: the value
  // is zeros of a shape that the next run decides.
  absl::StatusOr<Tensor> Read(const std::string& input);
  // kNotFound, kInvalidArgument (another type or shape than the input's).
  absl::Status Write(const std::string& input, const Tensor& value);

 private:
  struct Kept {
    // On a surface: zeros of the value's shape. Undefined: zeros of a shape that is not known yet.
    Tensor value;
    bool on_surface = false;
  };

  const PortInfo& InputOf(size_t pair) const { return inputs_[pairs_[pair].input]; }
  const std::string& OutputOf(size_t pair) const {
    return current_->outputs()[pairs_[pair].output].name;
  }
  bool IsResident(size_t pair) const { return !place_.empty() && place_[pair] >= 0; }
  // Sets model_ and growing_, which do not change while the caller has the result and the mutex.
  std::shared_ptr<const void> TakeNewest();
  absl::StatusOr<size_t> PairOf(const std::string& input) const;
  absl::StatusOr<Tensor> FirstValue(size_t pair, const NamedValues& given) const;
  Tensor ValueOf(size_t pair) const;
  absl::Status CheckValue(size_t pair, const OnnxValue& value) const;
  absl::Status MoveTo(std::shared_ptr<const LoadedModel> program, bool grows);
  absl::StatusOr<NamedValues> Filled(const NamedValues& given);
  absl::Status WithKept(const absl::Status& status, const NamedValues& given) const;
  absl::StatusOr<NamedValues> RunFilled(NamedValues& filled, const NamedValues& given,
                                        Trace* trace);

  const std::shared_ptr<const CurrentModel> current_;
  const std::vector<StatePair> pairs_;
  std::vector<PortInfo> inputs_;                  // of the model
  std::vector<PortInfo> shown_inputs_, outputs_;  // of the session

  mutable std::mutex mutex_;                    // guards the members below; held while a run lasts
  std::shared_ptr<const LoadedModel> model_;    // that of the last call
  std::shared_ptr<Growing> growing_;            // its programs for caches that grow; may be null
  std::vector<Kept> kept_;                      // by pair
  std::shared_ptr<const LoadedModel> program_;  // whose surfaces hold values; null at first
  int64_t rows_ = 0;                            // of its caches that grow; 0: they do not
  Scheduler::Resident resident_;
  std::vector<int> place_;  // by pair: its index in resident_.pairs, or -1
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_KEPT_STATE_H_
