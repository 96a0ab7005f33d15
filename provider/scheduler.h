// provider/scheduler.h: runs the segments of a plan. Engine segments are programs of a device, CPU
// segments are ONNX Runtime sessions, each body of control flow has another scheduler, and rows of
// a state are written here (importer/row_writes.h). Independent segments run at the same time.
// Values on the engine are in shared surfaces.
#ifndef ANEMONE_PROVIDER_SCHEDULER_H_
#define ANEMONE_PROVIDER_SCHEDULER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/onnx_value.h"
#include "base/idle_pool.h"
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
  struct RunState;  // the data of one run

  // Values that stay on the engine between runs. After a run, the surface of a pair's output is
  // that of its input, or the output is appended to the rows that the input has. For one run at a
  // time.
  struct Resident {
    // With only an input or only an output, the caller writes or reads the surface itself.
    struct Pair {
      ValueId input = kNone, output = kNone;
      bool holds = false;  // the surface has the input's value; the one given to Run() is ignored
      std::optional<Axis> rows_axis = {};  // of rows that are appended
      int64_t rows = 0;                    // that the input has

      // The position of rows_axis, which must be set, in a shape of ONNX with this rank.
      size_t RowsIndex(size_t rank) const;
      // The shape of the value that the input has; `dims` is its shape with any number of rows.
      std::vector<int64_t> DimsOf(std::vector<int64_t> dims) const;
    };
    std::vector<Pair> pairs;
    std::shared_ptr<RunState> surfaces;
  };

  // Compiles every engine segment. `cpu_parts` are the CPU segments, by segment. `runtime` is
  // called if one of them, or of a body, is a session, or if a body may get what is not a tensor.
  // The plan and graph are borrowed for the scheduler's life.
  // `heeds_limits`: ports are bound by name and all surfaces have the same size, as the silicon
  // requires. Otherwise surfaces have the sizes of the ports, in the network's order. `watch` is
  // told of the values that enter and leave the engine; it is borrowed and may be null. `make`
  // makes the program of a segment instead of the device, except in bodies; it may be null.
  using MakeProgram = std::function<absl::StatusOr<std::shared_ptr<const Program>>(
      int segment, const Network& network)>;
  static absl::StatusOr<std::unique_ptr<Scheduler>> Make(const Graph& graph, const Plan& plan,
                                                         Device& device, RuntimeSource runtime,
                                                         bool heeds_limits, RangeWatch* watch,
                                                         std::vector<CpuPart> cpu_parts,
                                                         const MakeProgram& make = nullptr);

  ~Scheduler();

  // The same with other programs and plain parts for some segments. It shares all else with this
  // scheduler, but no memory of runs.
  std::unique_ptr<Scheduler> With(
      const std::map<int, std::shared_ptr<const Program>>& programs,
      const std::map<int, std::shared_ptr<const PlainPart>>& plain_parts) const;
  // Null if the segment has none.
  const PlainPart* plain_part(int segment) const { return (*cpu_parts_)[segment].plain.get(); }
  const std::shared_ptr<const Program>& program(int segment) const { return programs_[segment]; }

  // `inputs` are in the graph's order and checked by the caller; the results are in the order of
  // the graph's outputs. Runs in the caller's oneTBB arena. Thread-safe. `trace` and `hazards` may
  // be null.
  // `resident` may be null. The outputs of its pairs are left out of the results (kNothing). If the
  // run fails, its inputs keep their values.
  absl::StatusOr<std::vector<OnnxValue>> Run(std::vector<OnnxValue> inputs, Trace* trace,
                                             HazardLog* hazards = nullptr,
                                             Resident* resident = nullptr);

  // True if a graph's output can be the input's next value on its surface with the same bits as by
  // way of a tensor: an engine segment makes it, or it is the input with rows written; only engine
  // segments read the two; and their surfaces have one layout.
  bool CanStay(ValueId input, ValueId output) const;
  // True if the output can be appended to the input along `axis`: the same, except that the
  // surfaces differ along the axis.
  bool CanAppend(ValueId input, ValueId output, Axis axis) const;
  // With surfaces for these pairs, for which CanStay(), CanAppend() or CanShow() is true. No value
  // is in two of them.
  absl::StatusOr<Resident> MakeResident(std::vector<Resident::Pair> pairs) const;
  // Sets the rows of a pair that appends, and zeros behind them. `value` is the input with as many
  // rows as there are.
  void SetRows(Resident& resident, Resident::Pair& pair, const Tensor& value) const;
  // The value of the pair's input; the pair `holds` it.
  Tensor Read(const Resident& resident, const Resident::Pair& pair) const;

  // True if a caller may write the surface of this input of the graph, or read that of this output:
  // it is fp16, only engine segments read it, and one of them makes the output.
  bool CanShow(ValueId port) const;
  struct Shown {
    std::byte* data;
    SurfaceLayout layout;
  };
  Shown Show(const Resident& resident, ValueId port) const;
  // Before a run: what the caller wrote enters the engine.
  void TakeShown(const Resident& resident) const;

  // The same for a body. `captured` is in the graph's order too. Values that stay on the CPU are
  // passed on without conversion.
  absl::StatusOr<std::vector<RunValue>> RunBody(absl::Span<const RunValue> inputs,
                                                absl::Span<const RunValue> captured, Trace* trace,
                                                HazardLog* hazards);

 private:
  class Runner;

  Scheduler(const Graph& graph, const Plan& plan, Device& device, bool heeds_limits,
            RangeWatch* watch);
  Scheduler(const Scheduler& other);  // without the memory of runs
  void BindPorts(const Segment& segment);
  bool IsMadeOnTheEngine(ValueId output) const;
  bool StaysOnTheEngine(ValueId input, ValueId output) const;
  SurfaceLayout RowsOf(const Resident::Pair& pair, int64_t rows) const;
  void Append(Resident& resident, Resident::Pair& pair) const;
  absl::Status Keep(Resident& resident) const;
  void PutBackRows(RunState& state) const;
  absl::StatusOr<std::unique_ptr<RunState>> MakeState(absl::Span<const int64_t> bytes) const;
  absl::StatusOr<std::unique_ptr<RunState>> TakeState();
  // Both take the inputs.
  absl::StatusOr<std::vector<RunValue>> RunAlone(absl::Span<RunValue> inputs,
                                                 absl::Span<const RunValue> captured, Trace* trace,
                                                 HazardLog* hazards);
  absl::StatusOr<std::vector<RunValue>> RunIn(RunState& state, absl::Span<RunValue> inputs,
                                              absl::Span<const RunValue> captured, Trace* trace,
                                              HazardLog* hazards, Resident* resident);

  const Graph& graph_;
  const Plan& plan_;
  Device& device_;
  std::shared_ptr<const OrtRuntime> runtime_;  // null: no session needs it
  const bool heeds_limits_;
  RangeWatch* const watch_;
  std::vector<std::shared_ptr<const Program>> programs_;  // by segment; null on the CPU
  std::vector<std::vector<ValueId>> bound_inputs_;        // by segment, in its program's order
  std::vector<std::vector<ValueId>> bound_outputs_;
  std::shared_ptr<const std::vector<CpuPart>> cpu_parts_;   // by segment
  std::vector<std::shared_ptr<ControlFlow>> control_flow_;  // by segment; null if it has no bodies
  std::vector<std::vector<int>> dependencies_;              // by segment
  std::vector<std::vector<int>> dependents_;
  std::vector<std::vector<ValueId>> last_reads_;  // by segment
  bool is_sequence_ = true;                       // each segment depends on the one before it
  SurfacePlan surfaces_;
  std::vector<bool> read_on_cpu_;     // by value: a CPU segment reads it
  std::vector<bool> read_as_tensor_;  // by value: a CPU segment or the caller reads it

  IdlePool<std::unique_ptr<RunState>> idle_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SCHEDULER_H_
