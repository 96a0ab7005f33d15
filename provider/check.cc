#include "anemone/check.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/guarded.h"
#include "anemone/printable.h"
#include "anemone/status_macros.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/bucketing.h"
#include "provider/importing.h"
#include "provider/planning.h"

namespace anemone {

namespace {

// A model at sizes for which it is planned.
struct Sized {
  BucketSizes bucket;   // empty: the model has none
  BucketSizes below;    // sizes that are padded to it, the largest; `bucket`: none are
  std::string refusal;  // why these are not padded; "" if they are
  Model model;
};

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json SizesJson(const BucketSizes& sizes) {
  Json json = Json::object();
  for (const auto& [symbol, size] : sizes) json[symbol] = size;
  return json;
}

// "  bucket seq=64: smaller inputs are padded (proven for seq=63)".
std::string BucketLine(const Sized& sized) {
  const std::string below = Printable(BucketText(sized.below));
  std::string line = absl::StrCat("  bucket ", Printable(BucketText(sized.bucket)));
  if (sized.below == sized.bucket) {
    absl::StrAppend(&line, ": no size is padded to it");
  } else if (sized.refusal.empty()) {
    absl::StrAppend(&line, ": smaller inputs are padded (proven for ", below, ")");
  } else {
    absl::StrAppend(&line, ": smaller inputs get a program of their exact size\n    at ", below,
                    ": ", Printable(sized.refusal),
                    "\n    remedy: bind the dimension with --dim, or give each ",
                    "size as a bucket");
  }
  return line + "\n";
}

void AddBucket(const Sized& sized, Json& json) {
  json["bucket"] = SizesJson(sized.bucket);
  const bool none = sized.below == sized.bucket;
  json["padding"] = none ? Json(nullptr)
                         : Json{{"at", SizesJson(sized.below)},
                                {"proven", sized.refusal.empty()},
                                {"reason", OrNull(sized.refusal)}};
}

}  // namespace

struct CheckReport::State {
  std::vector<Sized> sizes;   // one if there are no buckets
  std::vector<size_t> sized;  // by plan: index of `sizes`
  std::vector<Plan> plans;

  using Import = std::function<absl::StatusOr<Model>(const ImportOptions&)>;
  static absl::StatusOr<CheckReport> Report(const CheckOptions& options, const Import& import);
  absl::Status ImportSizes(const CheckOptions& options, const Import& import);
};

// Without ONNX Runtime fewer constants are folded, which is no reason not to answer.
absl::Status CheckReport::State::ImportSizes(const CheckOptions& options, const Import& import) {
  const ImportOptions importing = ImportingOptions(
      options.dims, options.shapes, std::make_shared<LazyRuntime>(1, options.ort_library));
  if (options.buckets.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(sizes.emplace_back().model, import(importing));
    return absl::OkStatus();
  }
  ANEMONE_ASSIGN_OR_RETURN(Bucketing buckets, Bucketing::Make(options.buckets, importing, import));
  for (const BucketSizes& bucket : buckets.All()) {
    ImportOptions bound = importing;
    bound.dims.insert(bucket.begin(), bucket.end());
    Sized& added = sizes.emplace_back(Sized{.bucket = bucket, .below = buckets.Below(bucket)});
    ANEMONE_ASSIGN_OR_RETURN(added.model, import(bound));
    if (added.below == bucket) continue;
    const absl::Status proven = buckets.Prove(bucket, added.below).status();
    if (!proven.ok()) added.refusal = std::string(proven.message());
  }
  return absl::OkStatus();
}

CheckReport::CheckReport(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckReport::CheckReport(CheckReport&&) noexcept = default;
CheckReport& CheckReport::operator=(CheckReport&&) noexcept = default;
CheckReport::~CheckReport() = default;

size_t CheckReport::targets() const { return state_->plans.size(); }

std::optional<double> CheckReport::EngineMacsShare(size_t target) const {
  const Plan& plan = state_->plans[target];
  if (plan.macs() == 0) return std::nullopt;
  return static_cast<double>(plan.engine_macs()) / static_cast<double>(plan.macs());
}

std::string CheckReport::Text(bool every_node, bool colour) const {
  std::string text;
  for (size_t i = 0; i < state_->plans.size(); ++i) {
    const Sized& sized = state_->sizes[state_->sized[i]];
    text += PlanText(sized.model, state_->plans[i], every_node, colour);
    if (!sized.bucket.empty()) text += BucketLine(sized);
  }
  return text;
}

std::string CheckReport::Json() const {
  const Sized& first = state_->sizes.front();
  if (first.bucket.empty()) return Dump(ModelJson(first.model, state_->plans));
  anemone::Json json = ModelJson(first.model, {&state_->plans[0], 1});
  json["targets"] = anemone::Json::array();
  for (size_t i = 0; i < state_->plans.size(); ++i) {
    const Sized& sized = state_->sizes[state_->sized[i]];
    json["targets"].push_back(PlanJson(sized.model, state_->plans[i]));
    AddBucket(sized, json["targets"].back());
  }
  return Dump(json);
}

absl::StatusOr<CheckReport> CheckReport::State::Report(const CheckOptions& options,
                                                       const Import& import) {
  return Guarded("check the model", [&]() -> absl::StatusOr<CheckReport> {
    std::vector<PlanOptions> plannings;
    for (const std::string& target : ExpandTargets(options.targets)) {
      ANEMONE_ASSIGN_OR_RETURN(
          PlanOptions planning,
          PlanningOptions(target, options.route, options.policy, options.rewrites));
      plannings.push_back(std::move(planning));
    }
    auto state = std::make_unique<State>();
    ANEMONE_RETURN_IF_ERROR(state->ImportSizes(options, import));
    for (const PlanOptions& planning : plannings) {
      for (size_t i = 0; i < state->sizes.size(); ++i) {
        ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(state->sizes[i].model, planning));
        state->plans.push_back(std::move(plan));
        state->sized.push_back(i);
      }
    }
    return CheckReport(std::move(state));
  });
}

absl::StatusOr<CheckReport> Check(const std::string& path, const CheckOptions& options) {
  return CheckReport::State::Report(
      options, [&](const ImportOptions& importing) { return ImportFile(path, importing); });
}

absl::StatusOr<CheckReport> CheckBytes(absl::string_view model, const CheckOptions& options) {
  return CheckReport::State::Report(
      options, [&](const ImportOptions& importing) { return ImportBytes(model, "", importing); });
}

}  // namespace anemone
