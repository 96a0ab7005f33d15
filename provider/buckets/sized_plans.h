// provider/buckets/sized_plans.h: the plans of one model, at one size or at each of its buckets.
#ifndef ANEMONE_PROVIDER_BUCKETS_SIZED_PLANS_H_
#define ANEMONE_PROVIDER_BUCKETS_SIZED_PLANS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "partitioner/plan.h"
#include "partitioner/plan_json.h"
#include "provider/buckets/bucketing.h"

namespace anemone {

class SizedPlans {
 public:
  // One for each of `plannings`, which are at least one.
  static absl::StatusOr<SizedPlans> Of(Model model, absl::Span<const PlanOptions> plannings);
  // One for each bucket of each of them, with a word on what is padded to it. From one thread at a
  // time.
  static absl::StatusOr<SizedPlans> OfBuckets(Bucketing& buckets,
                                              absl::Span<const PlanOptions> plannings);

  const std::vector<Plan>& plans() const { return plans_; }
  // Every plan's table; with `every_node`, a line for each node as well.
  std::string Text(bool every_node, bool colour) const;
  // The items of "targets" in check.json, and the item of "models" that has them.
  Json TargetsJson() const;
  Json ToJson() const;

 private:
  // A model at sizes for which it is planned.
  struct Sized {
    Model model;
    BucketSizes bucket;   // empty: the model has none
    BucketSizes below;    // sizes that are padded to it, the largest; `bucket`: none are
    std::string refusal;  // why these are not padded; "" if they are
  };
  static std::string BucketLine(const Sized& sized);
  static void AddBucket(const Sized& sized, Json& json);

  absl::Status MakePlans(absl::Span<const PlanOptions> plannings);
  const Sized& SizedOf(size_t plan) const { return sizes_[plan % sizes_.size()]; }

  std::vector<Sized> sizes_;
  std::vector<Plan> plans_;  // of all sizes for the first planning, then for the next
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_SIZED_PLANS_H_
