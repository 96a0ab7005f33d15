#include "tools/train/metrics.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "engine/formats/parse_json.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

std::string LineOf(const Metric& metric) {
  const Json loss = std::isfinite(metric.loss) ? Json(metric.loss) : Json(nullptr);
  return absl::StrCat(
      Json({{"step", metric.step}, {"loss", loss}, {"seconds", metric.seconds}}).dump(), "\n");
}

}  // namespace

absl::StatusOr<Metrics> Metrics::Open(const std::string& path, int64_t steps) {
  Metrics metrics;
  metrics.path_ = path;
  std::string kept;
  if (steps > 0) {
    const auto old = MappedFile::Open(path);
    // Whatever else fails must not end in a new file, which would lose the lines.
    const bool is_new = absl::IsNotFound(old.status()) || absl::IsDataLoss(old.status());
    if (!old.ok() && !is_new) return old.status();
    for (absl::string_view line : absl::StrSplit(is_new ? "" : (*old)->text(), '\n')) {
      const auto json = ParseJson(line);
      if (!json.ok() || !json->is_object() || !json->contains("step") ||
          !(*json)["step"].is_number_integer() || !json->contains("loss") ||
          !json->contains("seconds") || !(*json)["seconds"].is_number()) {
        continue;
      }
      const Json& loss = (*json)["loss"];
      const Metric metric = {.step = (*json)["step"].get<int64_t>(),
                             .loss = loss.is_number() ? loss.get<double>() : NAN,
                             .seconds = (*json)["seconds"].get<double>()};
      if (metric.step != static_cast<int64_t>(metrics.all_.size()) + 1 || metric.step > steps) {
        continue;
      }
      metrics.all_.push_back(metric);
      absl::StrAppend(&kept, LineOf(metric));
    }
  }
  ANEMONE_RETURN_IF_ERROR(WriteUserFile(path, {kept}));
  metrics.file_.reset(std::fopen(path.c_str(), "a"));
  if (metrics.file_ == nullptr) {
    return absl::PermissionDeniedError(
        absl::StrCat("file '", path, "': cannot be written; choose another --checkpoint"));
  }
  return metrics;
}

absl::Status Metrics::Add(const Metric& metric) {
  all_.push_back(metric);
  if (file_ == nullptr) return absl::OkStatus();
  const std::string line = LineOf(metric);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("file '", path_, "': cannot be written; is the disk full?"));
  }
  return absl::OkStatus();
}

}  // namespace anemone
