// provider/buckets/bucketed.h: one model at several sizes: a program for each bucket, and for sizes
// that cannot be padded one of their own.
//
// Programs are made when a run first needs them: each keeps its own packed weights, and a caller
// that never sees long inputs does not pay for them. The file is mapped once for all, and all of
// them compute with one budget of threads.
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

// From many threads at once.
class Bucketed {
 public:
  // Makes a program of a model at some sizes.
  using Load = std::function<absl::StatusOr<Session>(
      const std::function<absl::StatusOr<Model>()>& at_sizes)>;

  Bucketed(Bucketing buckets, PlanOptions planning, Load load)
      : buckets_(std::move(buckets)), planning_(std::move(planning)), load_(std::move(load)) {}

  // A run: what is to be run on what, and how its outputs are cropped.
  struct Job {
    std::shared_ptr<const Session> program;
    NamedTensors inputs;
    const std::vector<PaddedLayout>* layouts = nullptr;  // by output; null: nothing is cropped
    BucketUse use;
  };
  absl::StatusOr<Job> Prepare(const NamedTensors& inputs);
  static absl::StatusOr<NamedTensors> Crop(const Job& job, NamedTensors outputs);

  // Of the program that was used last; zeros before.
  PlanSummary summary();
  // Of all programs made so far.
  LoadTimes times();
  // Of all buckets, made when first asked for.
  absl::StatusOr<const SizedPlans*> Plans();

 private:
  using Program = std::pair<BucketSizes, std::shared_ptr<const Session>>;

  absl::StatusOr<const PaddingVerdict*> ProofOf(const BucketSizes& bucket,
                                                const BucketSizes& sizes);
  std::string MaskRefusal(const PaddingProof& proof, const NamedTensors& inputs) const;
  absl::StatusOr<std::shared_ptr<const Session>> ProgramOf(const BucketSizes& sizes, bool exact);

  std::mutex making_;  // proofs, programs and plans, one at a time
  Bucketing buckets_;
  const PlanOptions planning_;
  const Load load_;
  std::unique_ptr<const SizedPlans> plans_;

  std::mutex mutex_;  // of what follows
  std::map<BucketSizes, PaddingVerdict> proofs_;
  std::map<BucketSizes, std::shared_ptr<const Session>> programs_;
  std::list<Program> exact_programs_;  // the one used last in front
  std::shared_ptr<const Session> last_;
  LoadTimes times_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_
