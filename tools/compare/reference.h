// tools/compare/reference.h: runs a model with ONNX Runtime for comparisons, and times runs.
#ifndef ANEMONE_TOOLS_COMPARE_REFERENCE_H_
#define ANEMONE_TOOLS_COMPARE_REFERENCE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/command/options.h"
#include "tools/compare/inputs.h"

namespace anemone {

// In milliseconds: the first run, and the median of the runs after it.
struct RunTimes {
  double first = 0, median = 0;
};
// Runs once, then `repeat` times more.
absl::StatusOr<RunTimes> TimeRuns(int repeat, const std::function<absl::Status()>& run);

// What times are of. Users read a time next to a target's name as the time of that chip.
inline constexpr char kTimesOf[] = "software engine on this CPU";  // "times_of" of --json
// "times on this CPU (software engine); they say nothing of the M1's speed"
std::string TimesNote(const std::string& target);

struct Reference {
  Arrays outputs;
  double load = 0;
  RunTimes run;
};

// What a run leaves for the next: the input, the output that is its next value, and its first
// value.
struct StateFeed {
  std::string input, output;
  Tensor first;
};

// Runs the original file with ONNX Runtime, once and then --repeat times more.
absl::StatusOr<Reference> RunReference(const std::string& path, const Arrays& inputs,
                                       const Options& options,
                                       const std::vector<StateFeed>& state = {});

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_REFERENCE_H_
