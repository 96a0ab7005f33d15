#include "tools/train/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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
  // Without O_NONBLOCK, opening a pipe that has no reader would block.
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (file >= 0 && ::fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
    metrics.file_.reset(::fdopen(file, "a"));
  } else if (file >= 0) {
    ::close(file);
  }
  if (metrics.file_ == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat(
        "file '", path, "': cannot be written, or is no file; choose another --checkpoint"));
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
