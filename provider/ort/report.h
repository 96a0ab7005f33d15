// provider/ort/report.h: reports of the plugin's plans: lines for the log, and a JSON file.
#ifndef ANEMONE_PROVIDER_ORT_REPORT_H_
#define ANEMONE_PROVIDER_ORT_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"
#include "provider/ort/claims.h"

namespace anemone {

// "ANE, M1: 99.8 % of MACs on the engine, 2 segments, 2 nodes on the CPU. ONNX Runtime's own
// (already optimized) graph has 54 nodes: 50 engine, 2 CPU, 2 folded". If the share is not known:
// which dimensions are free. Counts are those of the report's summary.
std::string ClaimLine(const HostPlan& made);

// "ANE: on the CPU: 2 TopK, coverage: ...", with the most important reasons.
std::string CpuLine(const HostPlan& made);

// "ANE: warnings: 12 nodes [interleave], ...". The report has their text.
std::string WarningLine(const HostPlan& made);

// A line for each node that stays on the CPU, with the reason.
std::vector<std::string> ReasonLines(const HostPlan& made);

// The plans of a session's graphs in the format of docs/schemas/check.json. "models" has an item
// for each graph, with its last plan.
class ReportFile {
 public:
  void Add(const std::string& graph, const HostPlan& made);
  // Writes the file atomically.
  absl::Status Write(const std::string& path) const;

 private:
  std::vector<std::pair<std::string, Json>> models_;  // by graph
};

// Writes `text`, which is JSON, to `path` atomically. kAlreadyExists: the file exists and is not
// JSON; it may be the model.
absl::Status ReplaceFile(const std::string& path, absl::string_view text);
// The error that ReplaceFile() would end with, without a trace of the attempt.
absl::Status CheckReplaceable(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_REPORT_H_
