// provider/scheduler.h: runs the segments of a plan. Engine segments are programs of a device, CPU
// segments are ONNX Runtime sessions, and each body of control flow has another scheduler.
// Independent segments run at the same time. Values on the engine are in shared surfaces.
#ifndef ANEMONE_PROVIDER_SCHEDULER_H_
#define ANEMONE_PROVIDER_SCHEDULER_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/onnx_value.h"
#include "engine/device.h"
#include "fallback/ort_runtime.h"
#include "partitioner/plan.h"
#include "provider/control_flow.h"
#include "provider/cpu_parts.h"
#include "provider/hazard_log.h"
#include "provider/range_watch.h"
#include "provider/run_value.h"
#include "provider/surface_plan.h"
#include "provider/trace.h"

namespace anemone {

class Scheduler {
 public:
  // Compiles every engine segment. `cpu_parts` are the CPU segments, by segment. `runtime` may be
  // null if there is no CPU segment. The plan and graph are borrowed for the scheduler's life.
  // `heeds_limits`: ports are bound by name and all surfaces have the same size, as the silicon
  // requires. Otherwise surfaces have the sizes of the ports, in the network's order. `watch` is
  // told of the values that enter and leave the engine; it is borrowed and may be null. `make`
  // makes the program of a segment instead of the device, except in bodies; it may be null.
  using MakeProgram = std::function<absl::StatusOr<std::shared_ptr<const Program>>(
      int segment, const Network& network)>;
  static absl::StatusOr<std::unique_ptr<Scheduler>> Make(const Graph& graph, const Plan& plan,
                                                         Device& device,
                                                         std::shared_ptr<const OrtRuntime> runtime,
                                                         bool heeds_limits, RangeWatch* watch,
                                                         std::vector<CpuPart> cpu_parts,
                                                         const MakeProgram& make = nullptr);

  ~Scheduler();

  // The same with other programs for some segments. It shares all else with this scheduler, but no
  // memory of runs.
  std::unique_ptr<Scheduler> WithPrograms(
      const std::map<int, std::shared_ptr<const Program>>& programs) const;
  const std::shared_ptr<const Program>& program(int segment) const { return programs_[segment]; }

  // `inputs` are in the graph's order and checked by the caller; the results are in the order of
  // the graph's outputs. Runs in the caller's oneTBB arena. Thread-safe. `trace` and `hazards` may
  // be null.
  absl::StatusOr<std::vector<OnnxValue>> Run(const std::vector<OnnxValue>& inputs, Trace* trace,
                                             HazardLog* hazards = nullptr);

  // The same for a body. `captured` is in the graph's order too. Values that stay on the CPU are
  // passed on without conversion.
  absl::StatusOr<std::vector<RunValue>> RunBody(absl::Span<const RunValue> inputs,
                                                absl::Span<const RunValue> captured, Trace* trace,
                                                HazardLog* hazards);

 private:
  struct RunState;
  class Runner;

  Scheduler(const Graph& graph, const Plan& plan, Device& device,
            std::shared_ptr<const OrtRuntime> runtime, bool heeds_limits, RangeWatch* watch);
  void BindPorts(const Segment& segment);
  absl::StatusOr<std::unique_ptr<RunState>> TakeState();

  const Graph& graph_;
  const Plan& plan_;
  Device& device_;
  std::shared_ptr<const OrtRuntime> runtime_;
  const bool heeds_limits_;
  RangeWatch* const watch_;
  std::vector<std::shared_ptr<const Program>> programs_;  // by segment; null on the CPU
  std::vector<std::vector<ValueId>> bound_inputs_;        // by segment, in its program's order
  std::vector<std::vector<ValueId>> bound_outputs_;
  std::shared_ptr<const std::vector<CpuPart>> cpu_parts_;   // by segment
  std::vector<std::shared_ptr<ControlFlow>> control_flow_;  // by segment; null if it has no bodies
  std::vector<std::vector<int>> dependencies_;              // by segment
  std::vector<std::vector<int>> dependents_;
  SurfacePlan surfaces_;
  std::vector<bool> read_as_tensor_;  // by value: a CPU segment or the caller reads it

  std::mutex mutex_;
  std::vector<std::unique_ptr<RunState>> idle_;  // surfaces of runs that have ended
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SCHEDULER_H_
