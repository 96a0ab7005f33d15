// provider/buckets/sized_plans.h: the plans of one model at one size, or at each of its buckets.
#ifndef ANEMONE_PROVIDER_BUCKETS_SIZED_PLANS_H_
#define ANEMONE_PROVIDER_BUCKETS_SIZED_PLANS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "partitioner/plan.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/buckets/bucketing.h"

namespace anemone {

class SizedPlans {
 public:
  // Makes one plan for each of `plannings`, of which there is at least one.
  static absl::StatusOr<SizedPlans> Of(Model model, absl::Span<const PlanOptions> plannings);
  // Makes a plan for each bucket and each of `plannings`, and finds out which sizes can be padded
  // to each bucket. Not thread-safe.
  static absl::StatusOr<SizedPlans> OfBuckets(Bucketing& buckets,
                                              absl::Span<const PlanOptions> plannings);

  const std::vector<Plan>& plans() const { return plans_; }
  // The model at the size of plans()[i].
  const Model& model(size_t i) const { return SizedOf(i).model; }
  // The bucket of plans()[i], "seq=32"; "" if the model has no buckets.
  std::string SizeText(size_t i) const { return BucketText(SizedOf(i).bucket); }
  // The text of one plan, or a table of several targets or buckets.
  std::string Text(const PlanTextOptions& options) const;
  // PlanLine() of every plan, separated by line breaks, with the buckets that it is true of.
  std::string Lines() const;
  // The items of "targets" in check.json, each as text.
  std::vector<std::string> TargetTexts() const;
  // The item of "models" in check.json, as text.
  std::string ToJsonText() const;

 private:
  // The model at the sizes for which it is planned.
  struct Sized {
    Model model;
    BucketSizes bucket;   // empty if the model has no buckets
    BucketSizes below;    // the largest sizes that are padded to it, or `bucket` if there are none
    std::string refusal;  // why `below` cannot be padded; "" if it can
  };
  std::string BucketLines(int width) const;
  static Json BucketJson(const Sized& sized);

  absl::Status MakePlans(absl::Span<const PlanOptions> plannings);
  const Sized& SizedOf(size_t plan) const { return sizes_[plan % sizes_.size()]; }

  std::vector<Sized> sizes_;
  std::vector<Plan> plans_;  // of all sizes for the first planning, then for the next
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_SIZED_PLANS_H_
