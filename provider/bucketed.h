// provider/bucketed.h: one model at several sizes: a program for each bucket, and for sizes that
// cannot be padded one of their own.
//
// Programs are made when a run first needs them: each keeps its own packed weights, and a caller
// that never sees long inputs does not pay for them. The file is mapped once for all.
#ifndef ANEMONE_PROVIDER_BUCKETED_H_
#define ANEMONE_PROVIDER_BUCKETED_H_

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/check.h"
#include "anemone/session.h"
#include "provider/bucketing.h"

namespace anemone {

using NamedTensors = std::map<std::string, Tensor>;

// From many threads at once.
class Bucketed {
 public:
  // `load` makes the program of sizes, `check` the plans of all buckets.
  Bucketed(Bucketing buckets, std::function<absl::StatusOr<Session>(const BucketSizes&)> load,
           std::function<absl::StatusOr<CheckReport>()> check)
      : buckets_(std::move(buckets)), load_(std::move(load)), check_(std::move(check)) {}

  // A run: what is to be run on what, and how its outputs are cropped.
  struct Job {
    std::shared_ptr<const Session> program;
    NamedTensors inputs;
    std::vector<PaddedLayout> layouts;  // by output; empty: nothing is cropped
    BucketUse use;
  };
  absl::StatusOr<Job> Prepare(const NamedTensors& inputs);
  static absl::StatusOr<NamedTensors> Crop(const Job& job, NamedTensors outputs);

  // Of the program that was used last; zeros before.
  PlanSummary summary();
  // Of all programs made so far.
  LoadTimes times();
  // Plans of all buckets, made when first asked for.
  absl::StatusOr<const CheckReport*> Plans();

 private:
  // What is known of the sizes of a run.
  struct Verdict {
    PaddingProof proof;
    std::string refusal;  // "": it is proven
  };
  using Program = std::pair<BucketSizes, std::shared_ptr<const Session>>;

  absl::StatusOr<const Verdict*> VerdictOn(const BucketSizes& bucket, const BucketSizes& sizes);
  std::string MaskRefusal(const PaddingProof& proof, const NamedTensors& inputs) const;
  absl::StatusOr<std::shared_ptr<const Session>> ProgramOf(const BucketSizes& sizes, bool exact);

  std::mutex making_;  // proofs, programs and plans, one at a time
  Bucketing buckets_;
  std::function<absl::StatusOr<Session>(const BucketSizes&)> load_;
  std::function<absl::StatusOr<CheckReport>()> check_;
  std::unique_ptr<const CheckReport> plans_;

  std::mutex mutex_;  // of what follows
  std::map<BucketSizes, Verdict> verdicts_;
  std::map<BucketSizes, std::shared_ptr<const Session>> programs_;
  std::list<Program> exact_programs_;  // the one used last in front
  PlanSummary summary_;
  LoadTimes times_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETED_H_
