// provider/buckets/bucketed.h: one model at several sizes. There is a program for each bucket;
// inputs that cannot be padded, and all inputs of a model without buckets, run with a program of
// their exact size.
//
// Programs are compiled on first use, because some callers never need the large buckets. All
// programs share one mapping of the file, one thread budget, and their packed weights
// (math/core/shared_pack.h).
#ifndef ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_
#define ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "partitioner/plan.h"
#include "provider/buckets/bucketing.h"
#include "provider/buckets/sized_plans.h"
#include "provider/run_inputs.h"

namespace anemone {

struct LoadedModel;

// Whether a program can serve the model with new weights, as it is imported with these options.
using Adopt = std::function<bool(const std::shared_ptr<const LoadedModel>& program,
                                 const ImportOptions& importing)>;

// A program of the sizes that are wanted, of a model before it got new weights.
struct EarlierProgram {
  std::shared_ptr<const LoadedModel> program;  // null: there is none
  Adopt adopt;
  bool Serves(const ImportOptions& importing) const {
    return program != nullptr && adopt(program, importing);
  }
};

// Thread-safe.
class Bucketed {
 public:
  // Compiles the model as it is imported with these options.
  using Load = std::function<absl::StatusOr<std::shared_ptr<const LoadedModel>>(
      const ImportOptions& importing)>;

  struct Options {
    PlanOptions planning;
    size_t most_exact = 1;  // the programs of exact sizes that are kept, the last ones used
    // Load fails with kResourceExhausted if the programs need too much memory. Programs of exact
    // sizes are then dropped to make room.
    bool memory_is_limited = false;
    LoadTimes begun;  // what was spent before the first program
  };

  Bucketed(Bucketing buckets, Options options, Load load)
      : buckets_(std::move(buckets)),
        options_(std::move(options)),
        load_(std::move(load)),
        times_(options_.begun) {}

  // One run: the program, its padded inputs, and how to crop its outputs.
  struct Job {
    std::shared_ptr<const LoadedModel> program;
    NamedValues inputs;
    const std::vector<PaddedLayout>* layouts = nullptr;  // by output; null if nothing is cropped
    BucketUse use;                                       // with buckets
  };
  absl::StatusOr<Job> Prepare(const NamedValues& inputs);
  static absl::StatusOr<NamedValues> Crop(const Job& job, NamedValues outputs);

  // Compiles the programs that `other` has, as far as `check` accepts each, or takes them if
  // `adopt` accepts them. Errors: that of the first that fails, or of `check`.
  absl::Status MakeThoseOf(
      Bucketed& other, const Adopt& adopt,
      const std::function<absl::Status(const LoadedModel& theirs, const LoadedModel& ours)>& check);

  bool has_buckets() const { return buckets_.has_buckets(); }
  const Model& free() const { return buckets_.free(); }
  const Target& target() const { return *options_.planning.target; }
  // Of a program that is not one of these: shows its plan, and counts its times.
  void Show(std::shared_ptr<const LoadedModel> program);
  void AddTimes(const LoadTimes& took);
  // The program that was used last; null before the first run.
  std::shared_ptr<const LoadedModel> last();
  // The sum over all programs compiled so far.
  LoadTimes times();
  // The plans of all buckets, or of the model with its free dimensions if there are no buckets.
  // Made on the first call.
  absl::StatusOr<const SizedPlans*> Plans();

 private:
  struct Sizes {
    BucketSizes buckets;
    InputShapes shapes;  // without buckets
    bool operator==(const Sizes&) const = default;
    bool operator<(const Sizes& other) const {
      return std::tie(buckets, shapes) < std::tie(other.buckets, other.shapes);
    }
  };
  using Program = std::pair<Sizes, std::shared_ptr<const LoadedModel>>;

  absl::StatusOr<const PaddingVerdict*> ProofOf(const BucketSizes& bucket,
                                                const BucketSizes& sizes);
  std::string MaskRefusal(const PaddingProof& proof, const NamedValues& inputs) const;
  absl::Status ChooseBucket(Job& job);
  absl::StatusOr<std::shared_ptr<const LoadedModel>> ProgramOf(const Sizes& sizes, bool exact,
                                                               const EarlierProgram& earlier = {});
  std::shared_ptr<const LoadedModel> Find(const Sizes& sizes);
  absl::StatusOr<std::shared_ptr<const LoadedModel>> Make(const Sizes& sizes,
                                                          const EarlierProgram& earlier);
  bool DropOldest();
  void Add(const LoadTimes& took);  // mutex_ is held

  std::mutex making_;  // held while making a proof, a program or plans
  Bucketing buckets_;
  const Options options_;
  const Load load_;
  std::unique_ptr<const SizedPlans> plans_;

  std::mutex mutex_;  // guards the members below
  std::map<BucketSizes, PaddingVerdict> proofs_;
  std::map<Sizes, std::shared_ptr<const LoadedModel>> programs_;  // of buckets
  std::list<Program> exact_programs_;                             // most recently used first
  std::shared_ptr<const LoadedModel> last_;
  LoadTimes times_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_BUCKETED_H_
