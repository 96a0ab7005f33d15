// provider/ort/report.h: what the plugin tells of its plans: a line for the log, all reasons, a
// file.
#ifndef ANEMONE_PROVIDER_ORT_REPORT_H_
#define ANEMONE_PROVIDER_ORT_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"
#include "provider/ort/claims.h"

namespace anemone {

// "ANE h13: 52 of 54 nodes and 99.8 % of 8.2 GFLOP in 2 segments; the rest: 2 x TopK, coverage:
// ...".
std::string ClaimLine(const HostPlan& made);

// A line for each node that stays, with the reason.
std::vector<std::string> ReasonLines(const HostPlan& made);

// Plans of a session's graphs, as docs/schemas/check.json says it: one of "models" for each graph,
// the last plan of it.
class ReportFile {
 public:
  void Add(const std::string& graph, const HostPlan& made);
  // Written beside and renamed into place.
  absl::Status Write(const std::string& path) const;

 private:
  std::vector<std::pair<std::string, Json>> models_;  // by graph
};

// `text`, JSON, to `path`, written beside and renamed into place. kAlreadyExists: another kind of
// file, such as the model, is there.
absl::Status ReplaceFile(const std::string& path, absl::string_view text);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_REPORT_H_
