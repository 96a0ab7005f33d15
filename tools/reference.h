// tools/reference.h: a model as ONNX Runtime runs it, for comparisons, and how long runs take.
#ifndef ANEMONE_TOOLS_REFERENCE_H_
#define ANEMONE_TOOLS_REFERENCE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "anemone/status_macros.h"
#include "anemone/tensor.h"
#include "tools/options.h"

namespace anemone {

using Arrays = std::map<std::string, Tensor>;

double MillisecondsSince(absl::Time start);
double Median(std::vector<double> times);

// Runs once, then `repeat` times more; the first run and the median of the rest.
struct RunTimes {
  double first = 0, median = 0;
};
template <class Run>
absl::StatusOr<RunTimes> TimeRuns(int repeat, const Run& run) {
  RunTimes times;
  absl::Time start = absl::Now();
  ANEMONE_RETURN_IF_ERROR(run());
  times.first = MillisecondsSince(start);
  std::vector<double> rest;
  for (int i = 0; i < repeat; ++i) {
    start = absl::Now();
    ANEMONE_RETURN_IF_ERROR(run());
    rest.push_back(MillisecondsSince(start));
  }
  times.median = Median(std::move(rest));
  return times;
}

struct Reference {
  Arrays outputs;
  double load = 0;
  RunTimes run;
};

// ONNX Runtime on the untouched file, once and --repeat times more.
absl::StatusOr<Reference> RunReference(const std::string& path, const Arrays& inputs,
                                       const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_REFERENCE_H_
