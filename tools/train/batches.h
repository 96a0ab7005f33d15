// tools/train/batches.h: the batches of a training, from arrays of samples.
#ifndef ANEMONE_TOOLS_TRAIN_BATCHES_H_
#define ANEMONE_TOOLS_TRAIN_BATCHES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "anemone/tensor.h"

namespace anemone {

// Samples are taken in order and wrap round; with `shuffle`, each pass over the data has an order
// of its own, which depends on `seed` alone. So the batch of a run depends on its number only.
class Batches {
 public:
  // For each port, `arrays` has an array of its name with the samples along axis 0, or one of the
  // port's own sizes, which every batch gets. Elements are converted to the port's type. Errors:
  // kInvalidArgument, naming the array; also for an element that is NaN.
  static absl::StatusOr<Batches> Make(std::map<std::string, Tensor> arrays,
                                      const std::vector<PortInfo>& ports, bool shuffle,
                                      uint64_t seed);

  // The inputs of run `run`, from 0.
  std::map<std::string, Tensor> Of(int64_t run);

  // The samples of `count` runs from `run` on, for messages: "samples 4, 5, 6, 7, ...".
  std::string NamesOf(int64_t run, int64_t count);

  int64_t samples() const { return samples_; }
  int64_t batch() const { return batch_; }

 private:
  int64_t SampleAt(int64_t place);

  std::vector<PortInfo> ports_;
  std::map<std::string, Tensor> arrays_;
  int64_t samples_ = 0, batch_ = 0;
  bool shuffle_ = false;
  uint64_t seed_ = 0;
  int64_t pass_ = -1;           // of order_
  std::vector<int64_t> order_;  // of the samples in this pass
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_TRAIN_BATCHES_H_
