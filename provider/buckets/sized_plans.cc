#include "provider/buckets/sized_plans.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/wrapped_text.h"

namespace anemone {

absl::StatusOr<SizedPlans> SizedPlans::Of(Model model, absl::Span<const PlanOptions> plannings) {
  SizedPlans made;
  made.sizes_.push_back({std::move(model)});
  ANEMONE_RETURN_IF_ERROR(made.MakePlans(plannings));
  return made;
}

absl::StatusOr<SizedPlans> SizedPlans::OfBuckets(Bucketing& buckets,
                                                 absl::Span<const PlanOptions> plannings) {
  SizedPlans made;
  for (const BucketSizes& bucket : buckets.All()) {
    ANEMONE_ASSIGN_OR_RETURN(Model model, buckets.ModelAt(bucket));
    Sized& added =
        made.sizes_.emplace_back(Sized{std::move(model), bucket, buckets.Below(bucket), ""});
    if (added.below == bucket) continue;
    // If the model cannot be imported at a size, that is the reason shown in the same line.
    const auto proven = buckets.Prove(bucket, added.below);
    added.refusal = proven.ok() ? proven->refusal : std::string(proven.status().message());
  }
  ANEMONE_RETURN_IF_ERROR(made.MakePlans(plannings));
  return made;
}

absl::Status SizedPlans::MakePlans(absl::Span<const PlanOptions> plannings) {
  for (const PlanOptions& planning : plannings) {
    for (const Sized& sized : sizes_) {
      ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(sized.model, planning));
      plans_.push_back(std::move(plan));
    }
  }
  return absl::OkStatus();
}

// "  bucket seq=64: smaller inputs are padded (proven for seq=63)".
std::string SizedPlans::BucketLines(const Sized& sized, int width) {
  const std::string below = Printable(BucketText(sized.below));
  const std::string title = absl::StrCat("  bucket ", Printable(BucketText(sized.bucket)), ": ");
  std::string text;
  if (sized.below == sized.bucket) {
    text = absl::StrCat(title, "no size is padded to it");
  } else if (sized.refusal.empty()) {
    text = absl::StrCat(title, "smaller inputs are padded (proven for ", below, ")");
  } else {
    text =
        absl::StrCat(title,
                     "smaller inputs are run with a program compiled for their exact size\n"
                     "    at ",
                     below, ": ", Printable(sized.refusal),
                     "\n    remedy: bind the dimension with --dim, or give each size as a bucket");
  }
  return Wrapped(text, width, 6) + "\n";
}

void SizedPlans::AddBucket(const Sized& sized, Json& json) {
  json["bucket"] = sized.bucket;
  const bool none = sized.below == sized.bucket;
  json["padding"] = none ? Json(nullptr)
                         : Json{{"at", sized.below},
                                {"proven", sized.refusal.empty()},
                                {"reason", OrNull(sized.refusal)}};
}

std::string SizedPlans::Text(const PlanTextOptions& options) const {
  if (sizes_.front().bucket.empty()) return PlansText(sizes_.front().model, plans_, options);
  std::string text;
  for (size_t i = 0; i < plans_.size(); ++i) {
    text += PlanText(SizedOf(i).model, plans_[i], options);
    text += BucketLines(SizedOf(i), options.width);
  }
  return text;
}

std::string SizedPlans::Lines() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < plans_.size(); ++i) {
    const Sized& sized = SizedOf(i);
    const std::string bucket =
        sized.bucket.empty() ? "" : absl::StrCat(Printable(BucketText(sized.bucket)), "; ");
    lines.push_back(absl::StrCat(bucket, PlanLine(sized.model, plans_[i])));
  }
  return absl::StrJoin(lines, "\n");
}

Json SizedPlans::TargetsJson() const {
  Json targets = Json::array();
  for (size_t i = 0; i < plans_.size(); ++i) {
    const Sized& sized = SizedOf(i);
    Json& added = targets.emplace_back(PlanJson(sized.model, plans_[i]));
    if (!sized.bucket.empty()) AddBucket(sized, added);
  }
  return targets;
}

Json SizedPlans::ToJson() const {
  const Sized& first = sizes_.front();
  if (first.bucket.empty()) return ModelJson(first.model, plans_);
  Json json = ModelJson(first.model, {plans_.data(), 1});
  json["targets"] = TargetsJson();
  return json;
}

}  // namespace anemone
