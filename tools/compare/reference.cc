#include "tools/compare/reference.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "engine/target_names.h"
#include "tools/compare/contestants.h"

namespace anemone {

absl::StatusOr<RunTimes> TimeRuns(int repeat, const std::function<absl::Status()>& run) {
  absl::Status status;
  RunTimes times{.first = MillisecondsOf(run, status)};
  std::vector<double> rest;
  for (int i = 0; i < repeat && status.ok(); ++i) rest.push_back(MillisecondsOf(run, status));
  ANEMONE_RETURN_IF_ERROR(status);
  times.median = Percentile(std::move(rest), 0.5);
  return times;
}

std::string TimesNote(const std::string& target) {
  const auto found = FindTarget(target);
  return absl::StrCat("times on this CPU (software engine); they say nothing of the ",
                      found.ok() ? ProductName(**found) : target, "'s speed");
}

absl::StatusOr<Reference> RunReference(const std::string& path, const Arrays& inputs,
                                       const Options& options,
                                       const std::vector<StateFeed>& state) {
  OrtContestant model(options.settings.threads, options.settings.memory_limit);
  Arrays given = inputs;
  for (const StateFeed& value : state) given.emplace(value.input, value.first);
  Reference reference;
  absl::Status status;
  reference.load = MillisecondsOf(
      [&] {
        const TimeLimit limit(options.settings.time_limit);
        return model.Load(path, given);
      },
      status);
  ANEMONE_RETURN_IF_ERROR(status);
  bool is_first = true;
  const auto run = [&]() -> absl::Status {
    const TimeLimit limit(options.settings.time_limit);
    if (!state.empty() && !is_first) {
      ANEMONE_ASSIGN_OR_RETURN(const Arrays outputs, model.Outputs());
      Arrays next;
      for (const StateFeed& value : state) next.emplace(value.input, outputs.at(value.output));
      ANEMONE_RETURN_IF_ERROR(model.SetInputs(next));
    }
    is_first = false;
    return model.Run();
  };
  ANEMONE_ASSIGN_OR_RETURN(reference.run, TimeRuns(options.repeat, run));
  ANEMONE_ASSIGN_OR_RETURN(reference.outputs, model.Outputs());
  return reference;
}

}  // namespace anemone
