// tools/compare/reference.h: a model as ONNX Runtime runs it, for comparisons, and how long runs
// take.
#ifndef ANEMONE_TOOLS_COMPARE_REFERENCE_H_
#define ANEMONE_TOOLS_COMPARE_REFERENCE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "tools/command/options.h"
#include "tools/compare/inputs.h"

namespace anemone {

// Runs once, then `repeat` times more; the first run and the median of the rest, in milliseconds.
struct RunTimes {
  double first = 0, median = 0;
};
absl::StatusOr<RunTimes> TimeRuns(int repeat, const std::function<absl::Status()>& run);

struct Reference {
  Arrays outputs;
  double load = 0;
  RunTimes run;
};

// ONNX Runtime on the untouched file, once and --repeat times more.
absl::StatusOr<Reference> RunReference(const std::string& path, const Arrays& inputs,
                                       const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_REFERENCE_H_
