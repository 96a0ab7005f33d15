#include "provider/buckets/sized_plans.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/wrapped_text.h"
#include "partitioner/planner.h"

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
    added.refusal = proven.ok() ? proven->refusal : buckets.ReasonOf(proven.status());
  }
  ANEMONE_RETURN_IF_ERROR(made.MakePlans(plannings));
  return made;
}

// The plannings differ in their target alone.
absl::Status SizedPlans::MakePlans(absl::Span<const PlanOptions> plannings) {
  std::vector<std::unique_ptr<Planner>> planners;
  planners.reserve(sizes_.size());
  for (const Sized& sized : sizes_) {
    planners.push_back(std::make_unique<Planner>(sized.model, plannings.front(), plannings.size()));
  }
  for (const PlanOptions& planning : plannings) {
    for (const auto& planner : planners) {
      ANEMONE_ASSIGN_OR_RETURN(Plan plan, planner->Make(*planning.target));
      plans_.push_back(std::move(plan));
    }
  }
  return absl::OkStatus();
}

// "  seq=32, seq=64: smaller inputs are padded (proven for seq=31, seq=63)": a line for each answer
// to whether inputs are padded.
std::string SizedPlans::BucketLines(int width) const {
  struct Answer {
    const Sized* first;
    std::vector<std::string> buckets, below;
  };
  std::vector<Answer> answers;
  for (const Sized& sized : sizes_) {
    if (sized.bucket.empty()) continue;
    const bool padded = sized.below != sized.bucket;
    const auto known = std::find_if(answers.begin(), answers.end(), [&](const Answer& answer) {
      return (answer.first->below != answer.first->bucket) == padded &&
             answer.first->refusal == sized.refusal;
    });
    Answer& answer = known == answers.end() ? answers.emplace_back(Answer{&sized, {}, {}}) : *known;
    answer.buckets.push_back(Printable(BucketText(sized.bucket)));
    answer.below.push_back(Printable(BucketText(sized.below)));
  }
  std::string text;
  for (const Answer& answer : answers) {
    const std::string below = absl::StrJoin(answer.below, ", ");
    absl::StrAppend(&text, "  ", absl::StrJoin(answer.buckets, ", "), ": ");
    if (answer.first->below == answer.first->bucket) {
      absl::StrAppend(&text, "no size is padded to it");
    } else if (answer.first->refusal.empty()) {
      absl::StrAppend(&text, "smaller inputs are padded (proven for ", below, ")");
    } else {
      absl::StrAppend(&text,
                      "smaller inputs are run with a program compiled for their exact size\n"
                      "    at ",
                      below, ": ", Printable(answer.first->refusal),
                      "\n    remedy: bind the dimension with --dim, or give each size as a bucket");
    }
    text += "\n";
  }
  return Wrapped(text, width, 6);
}

Json SizedPlans::BucketJson(const Sized& sized) {
  const bool none = sized.below == sized.bucket;
  return {{"bucket", sized.bucket},
          {"padding", none ? Json(nullptr)
                           : Json{{"at", sized.below},
                                  {"proven", sized.refusal.empty()},
                                  {"reason", OrNull(sized.refusal)}}}};
}

std::string SizedPlans::Text(const PlanTextOptions& options) const {
  std::vector<PlanAtSize> plans;
  for (size_t i = 0; i < plans_.size(); ++i) {
    plans.push_back({&SizedOf(i).model, &plans_[i], BucketText(SizedOf(i).bucket)});
  }
  return PlansText(plans, BucketLines(options.width), options);
}

std::string SizedPlans::Lines() const {
  std::vector<std::pair<std::string, std::string>> lines;  // the sizes, and what is true of them
  for (size_t i = 0; i < plans_.size(); ++i) {
    const Sized& sized = SizedOf(i);
    const std::string sizes = Printable(BucketText(sized.bucket));
    std::string line = PlanLine(sized.model, plans_[i]);
    const auto known = std::find_if(lines.begin(), lines.end(),
                                    [&](const auto& other) { return other.second == line; });
    if (known == lines.end()) {
      lines.emplace_back(sizes, std::move(line));
    } else {
      absl::StrAppend(&known->first, ", ", sizes);
    }
  }
  return absl::StrJoin(lines, "\n", [](std::string* out, const auto& line) {
    absl::StrAppend(out, line.first, line.first.empty() ? "" : "; ", line.second);
  });
}

std::vector<std::string> SizedPlans::TargetTexts() const {
  std::vector<std::string> targets(plans_.size());
  for (size_t first = 0; first < sizes_.size(); ++first) {
    const Sized& sized = sizes_[first];
    std::vector<const Plan*> plans;
    for (size_t i = first; i < plans_.size(); i += sizes_.size()) plans.push_back(&plans_[i]);
    std::vector<std::string> texts = PlanJsonTexts(sized.model, plans);
    for (size_t i = 0; i < texts.size(); ++i) {
      std::string& text = targets[first + i * sizes_.size()];
      text = std::move(texts[i]);
      if (sized.bucket.empty()) continue;
      text.back() = ',';  // instead of the closing brace
      absl::StrAppend(&text, JsonText(BucketJson(sized)).substr(1));
    }
  }
  return targets;
}

std::string SizedPlans::ToJsonText() const {
  return ModelJsonText(sizes_.front().model, plans_.data(), TargetTexts());
}

}  // namespace anemone
