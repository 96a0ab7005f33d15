#include "tools/compare/reference.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
                                       const Options& options) {
  OrtContestant model(options.settings.threads);
  Reference reference;
  absl::Status status;
  reference.load = MillisecondsOf([&] { return model.Load(path, inputs); }, status);
  ANEMONE_RETURN_IF_ERROR(status);
  ANEMONE_ASSIGN_OR_RETURN(reference.run, TimeRuns(options.repeat, [&] { return model.Run(); }));
  ANEMONE_ASSIGN_OR_RETURN(reference.outputs, model.Outputs());
  return reference;
}

}  // namespace anemone
