// provider/control_flow.h: an If, a Loop or a Scan whose bodies Anemone runs, since one of them has
// an engine segment. Each body has a Scheduler of its own.
//
// Nothing is copied on the way in and between iterations, but what crosses to or from the engine;
// a Scan's slices are views where the axis is the first. Scan outputs are stacked at the end.
#ifndef ANEMONE_PROVIDER_CONTROL_FLOW_H_
#define ANEMONE_PROVIDER_CONTROL_FLOW_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device.h"
#include "fallback/ort_runtime.h"
#include "partitioner/plan.h"
#include "provider/hazard_log.h"
#include "provider/run_value.h"
#include "provider/trace.h"

namespace anemone {

class Scheduler;

class ControlFlow {
 public:
  // `segment` is of one node of `graph` and has bodies; both are borrowed. A branch of an If that
  // cannot be made (its sizes may contradict the inputs', and then it is never taken) is an error
  // of the run that takes it.
  static absl::StatusOr<std::unique_ptr<ControlFlow>> Make(
      const Graph& graph, const Segment& segment, Device& device,
      std::shared_ptr<const OrtRuntime> runtime, bool heeds_limits);

  ~ControlFlow();

  // The node's inputs and captures as it lists them; its outputs likewise. May be called from many
  // threads. `trace` and `hazards` may be null.
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
