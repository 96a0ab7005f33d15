// provider/ort/provider.h: ANEExecutionProvider in one session. It claims nodes, compiles the nodes
// that ONNX Runtime fuses from them, and runs them.
#ifndef ANEMONE_PROVIDER_ORT_PROVIDER_H_
#define ANEMONE_PROVIDER_ORT_PROVIDER_H_

#include <onnxruntime_c_api.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/own_process.h"
#include "engine/device.h"
#include "importer/importer.h"
#include "provider/memory_budget.h"
#include "provider/ort/compute.h"
#include "provider/ort/context.h"
#include "provider/ort/options.h"
#include "provider/ort/report.h"
#include "provider/package/program_cache.h"
#include "provider/range_watch.h"
#include "provider/trace.h"

namespace anemone {

inline constexpr char kProviderName[] = "ANEExecutionProvider";

class Provider : public OrtEp {
 public:
  // `logger` is the session's; `claims_once` as in factory.h.
  Provider(const OrtApi& api, const OrtLogger* logger, PluginOptions options,
           ContextOptions contexts, bool claims_once);
  // Opens the device of the options; before anything else. Errors: those of MakeDevice().
  absl::Status OpenDevice();
  // Writes the profile of a session that has run.
  ~Provider();

  absl::Status Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* claimed);
  // Sets `context`, which may be null, to the EPContext node if the session asks for one.
  absl::StatusOr<std::unique_ptr<FusedProgram>> Compile(const OrtGraph* graph,
                                                        const OrtNode* fused_node,
                                                        OrtNode** context);
  // Writes the report of all graphs so far, if the options name a file.
  absl::Status WriteReport() const;
  void NoteRun() { has_run_ = true; }
  absl::Status Run(FusedProgram& program, OrtKernelContext* context);

  const OrtApi& api() const { return api_; }
  const std::string& compatibility() const { return compatibility_; }

 private:
  absl::StatusOr<bool> ClaimContexts(const HostGraph& graph, OrtEpGraphSupportInfo* claimed) const;
  absl::Status AddClaim(const HostGraph& graph, const std::vector<int>& nodes,
                        OrtEpGraphSupportInfo* claimed) const;
  absl::Status ClaimToFail(const HostGraph& graph, absl::Status why,
                           OrtEpGraphSupportInfo* claimed);
  // The package of a fused node: from its EPContext node, from the cache, or from a new plan.
  absl::StatusOr<Package> PackageFor(const HostGraph& graph);
  absl::StatusOr<Package> PlanPackage(const HostGraph& graph) const;
  absl::Status CheckTarget(const Package& package) const;
  void Tell(const HostGraph& graph, const HostPlan& made);
  void Log(OrtLoggingLevel severity, const std::string& message) const;

  const OwnProcess process_;
  const OrtApi& api_;
  const OrtLogger* logger_;
  const PluginOptions options_;
  const ContextOptions contexts_;
  const bool claims_once_;
  bool has_compiled_ = false;
  bool saw_main_ = false;              // the graph around all bodies
  std::atomic<bool> has_run_ = false;  // also without a segment
  absl::Status over_limit_;            // why planning ended
  const ImportOptions importing_;
  std::shared_ptr<Device> device_;
  MemoryBudget memory_;
  std::vector<std::shared_ptr<const void>> taken_;  // of the budget, by the programs
  tbb::task_arena arena_;
  KnownValues inputs_;                   // of the claimed nodes
  std::unique_ptr<ProgramCache> cache_;  // null if there is none
  const std::string compatibility_;
  ReportFile report_;
  RangeWatch watch_;
  Trace trace_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_PROVIDER_H_
