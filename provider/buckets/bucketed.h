// provider/buckets/bucketed.h: one model at several sizes. There is a program for each bucket;
// inputs that cannot be padded run with a program of their exact size.
//
// Programs are compiled on first use, because each has a separate copy of the packed weights, and
// some callers never need the large buckets. All programs share one mapping of the file and one
// thread budget.
#ifndef ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_
#define ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "partitioner/plan.h"
#include "provider/buckets/bucketing.h"
#include "provider/buckets/sized_plans.h"

namespace anemone {

using NamedTensors = std::map<std::string, Tensor>;

// Thread-safe.
class Bucketed {
 public:
  // Compiles the model that `at_sizes` returns.
  using Load = std::function<absl::StatusOr<Session>(
      const std::function<absl::StatusOr<Model>()>& at_sizes)>;

  Bucketed(Bucketing buckets, PlanOptions planning, Load load)
      : buckets_(std::move(buckets)), planning_(std::move(planning)), load_(std::move(load)) {}

  // One run: the program, its padded inputs, and how to crop its outputs.
  struct Job {
    std::shared_ptr<const Session> program;
    NamedTensors inputs;
    const std::vector<PaddedLayout>* layouts = nullptr;  // by output; null if nothing is cropped
    BucketUse use;
  };
  absl::StatusOr<Job> Prepare(const NamedTensors& inputs);
  static absl::StatusOr<NamedTensors> Crop(const Job& job, NamedTensors outputs);

  // The summary of the program that was used last; zeros before the first run.
  PlanSummary summary();
  // The sum over all programs compiled so far.
  LoadTimes times();
  // The plans of all buckets, made on the first call.
  absl::StatusOr<const SizedPlans*> Plans();

 private:
  using Program = std::pair<BucketSizes, std::shared_ptr<const Session>>;

  absl::StatusOr<const PaddingVerdict*> ProofOf(const BucketSizes& bucket,
                                                const BucketSizes& sizes);
  std::string MaskRefusal(const PaddingProof& proof, const NamedTensors& inputs) const;
  absl::StatusOr<std::shared_ptr<const Session>> ProgramOf(const BucketSizes& sizes, bool exact);

  std::mutex making_;  // held while making a proof, a program or plans
  Bucketing buckets_;
  const PlanOptions planning_;
  const Load load_;
  std::unique_ptr<const SizedPlans> plans_;

  std::mutex mutex_;  // guards the members below
  std::map<BucketSizes, PaddingVerdict> proofs_;
  std::map<BucketSizes, std::shared_ptr<const Session>> programs_;
  std::list<Program> exact_programs_;  // most recently used first
  std::shared_ptr<const Session> last_;
  LoadTimes times_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_
