// provider/control_flow.h: runs an If, Loop or Scan of which at least one body has an engine
// segment. Each body has a separate Scheduler.
//
// Inputs and loop-carried values are not copied, except when they cross to or from the engine. A
// Scan's slices are views if the scanned axis is the first. Scan outputs are stacked at the end.
#ifndef ANEMONE_PROVIDER_CONTROL_FLOW_H_
#define ANEMONE_PROVIDER_CONTROL_FLOW_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device.h"
#include "partitioner/plan.h"
#include "provider/cpu_parts.h"
#include "provider/hazard_log.h"
#include "provider/range_watch.h"
#include "provider/run_value.h"
#include "provider/trace.h"

namespace anemone {

class Scheduler;

class ControlFlow {
 public:
  // `segment` has one node of `graph` and its bodies; both are borrowed. If a branch of an If
  // cannot be prepared, the error is returned by the run that takes the branch. (Its sizes may
  // contradict the inputs'; such a branch is never taken.)
  static absl::StatusOr<std::unique_ptr<ControlFlow>> Make(const Graph& graph,
                                                           const Segment& segment, Device& device,
                                                           RuntimeSource runtime, bool heeds_limits,
                                                           RangeWatch* watch);

  ~ControlFlow();

  // `inputs`, `captured` and the results are in the order in which the node lists them.
  // Thread-safe. `trace` and `hazards` may be null.
  absl::StatusOr<std::vector<RunValue>> Run(absl::Span<const RunValue> inputs,
                                            absl::Span<const RunValue> captured, Trace* trace,
                                            HazardLog* hazards) const;

 private:
  struct Call;
  struct Body;
  class Stacks;

  ControlFlow(const Graph& graph, const Node& node);
  absl::StatusOr<std::vector<RunValue>> RunIf(const Call& call) const;
  absl::StatusOr<std::vector<RunValue>> RunLoop(const Call& call) const;
  absl::StatusOr<std::vector<RunValue>> RunScan(const Call& call) const;
  absl::StatusOr<std::vector<RunValue>> RunBody(const Body& body, absl::Span<const RunValue> inputs,
                                                const Call& call) const;
  absl::StatusOr<std::vector<RunValue>> RunIteration(int64_t number,
                                                     absl::Span<const RunValue> given,
                                                     Stacks& stacks, const Call& call) const;

  const Graph& graph_;
  const Node& node_;
  std::vector<Body> bodies_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CONTROL_FLOW_H_
