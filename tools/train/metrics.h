// tools/train/metrics.h: metrics.jsonl, a line for each update of a training.
#ifndef ANEMONE_TOOLS_TRAIN_METRICS_H_
#define ANEMONE_TOOLS_TRAIN_METRICS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace anemone {

struct Metric {
  int64_t step = 0;  // from 1
  double loss = 0;
  double seconds = 0;  // of this update
};

class Metrics {
 public:
  // Begins the file, or goes on after `steps` updates: lines of later ones, which a training wrote
  // after its last checkpoint, are removed, and so are lines that are not complete.
  static absl::StatusOr<Metrics> Open(const std::string& path, int64_t steps);

  absl::Status Add(const Metric& metric);
  const std::vector<Metric>& all() const { return all_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::vector<Metric> all_;
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_TRAIN_METRICS_H_
