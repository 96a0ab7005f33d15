// The runs of provider/scheduler.h.
#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "fallback/from_onnx_value.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"
#include "provider/crossing.h"
#include "provider/failed_node.h"
#include "provider/row_blocks.h"
#include "provider/run_state.h"
#include "provider/scheduler.h"

namespace anemone {

namespace {

// Whether the sizes of the value's shape, which is static, are these.
bool HasDims(const Value& value, const std::vector<int64_t>& dims) {
  return std::equal(value.shape->begin(), value.shape->end(), dims.begin(), dims.end(),
                    [](const Dim& dim, int64_t size) { return dim.size == size; });
}

// True if the output stays on its surface.
bool IsOutputOf(const Scheduler::Resident& resident, ValueId output) {
  return std::any_of(resident.pairs.begin(), resident.pairs.end(),
                     [&](const auto& pair) { return pair.output == output; });
}

}  // namespace

// One run. Starts each segment when the last segment that it depends on has ended. Without tasks if
// there is only one order, because tasks take much of the time of a small model.
class Scheduler::Runner {
 public:
  Runner(Scheduler& scheduler, RunState& state, Trace* trace, HazardLog* hazards,
         const Resident* resident)
      : s_(scheduler), state_(state), trace_(trace), hazards_(hazards), resident_(resident) {}

  // Takes the inputs.
  absl::Status Run(absl::Span<RunValue> inputs, absl::Span<const RunValue> captured) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (IsHeld(s_.graph_.inputs[i])) continue;
      ANEMONE_RETURN_IF_ERROR(Publish(s_.graph_.inputs[i], std::move(inputs[i])));
    }
    for (size_t i = 0; i < captured.size(); ++i) {
      ANEMONE_RETURN_IF_ERROR(Publish(s_.graph_.captures[i], captured[i]));
    }
    const size_t segments = s_.programs_.size();
    if (s_.is_sequence_) {
      for (size_t i = 0; i < segments; ++i) RunOne(static_cast<int>(i));
      return first_error_;
    }
    waiting_ = std::vector<std::atomic<int>>(segments);
    std::vector<int> ready;
    for (size_t i = 0; i < segments; ++i) {
      waiting_[i] = static_cast<int>(s_.dependencies_[i].size());
      if (waiting_[i] == 0) ready.push_back(static_cast<int>(i));
    }
    tasks_.emplace();
    for (size_t i = 1; i < ready.size(); ++i) Start(ready[i]);
    tasks_->run_and_wait([this, first = ready[0]] { RunFrom(first); });
    return first_error_;
  }

 private:
  // An input whose surface has its value already.
  bool IsHeld(ValueId input) const {
    return resident_ != nullptr &&
           std::any_of(resident_->pairs.begin(), resident_->pairs.end(),
                       [&](const auto& pair) { return pair.holds && pair.input == input; });
  }
  bool Stays(ValueId output) const {
    return resident_ != nullptr && IsOutputOf(*resident_, output);
  }
  // An output that stays is an input of the next run.
  bool Enters(ValueId output) const {
    return std::any_of(resident_->pairs.begin(), resident_->pairs.end(), [&](const auto& pair) {
      return pair.output == output && pair.input != kNone;
    });
  }

  bool IsOutput(ValueId value) const {
    return std::find(s_.graph_.outputs.begin(), s_.graph_.outputs.end(), value) !=
           s_.graph_.outputs.end();
  }

  // Stores a value from outside the engine in all forms in which it is read.
  absl::Status Publish(ValueId value, RunValue given) {
    if (s_.surfaces_.slot[value] >= 0 && given.has_tensor()) {
      ANEMONE_RETURN_IF_ERROR(Cross(value, given.tensor));
    } else if (s_.surfaces_.slot[value] >= 0) {
      ANEMONE_ASSIGN_OR_RETURN(const Tensor tensor, given.cpu.ToTensor());
      ANEMONE_RETURN_IF_ERROR(Cross(value, tensor));
    }
    if (s_.surfaces_.slot[value] < 0 || s_.read_as_tensor_[value]) {
      state_.values[value] = std::move(given);
    }
    return absl::OkStatus();
  }

  std::string PlaceOfValue(ValueId value) const {
    const NodeId maker = s_.graph_.values[value].producer;
    return absl::StrCat(
        maker == kNone ? "" : absl::StrCat(ShortLabel(s_.graph_, s_.graph_.nodes[maker]), ": "),
        "value '", s_.graph_.values[value].name, "'");
  }

  // An error if the value is not as it was planned. It must have known dims.
  absl::Status CheckPlanned(ValueId value, const Tensor& tensor) const {
    const Value& planned = s_.graph_.values[value];
    if (HasDims(planned, tensor.dims()) && tensor.type() == planned.type) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat(PlaceOfValue(value), ": made as ", DataTypeName(tensor.type()), " ",
                     DimsToString(tensor.dims()), ", planned as ", DataTypeName(planned.type), " ",
                     DimsToString(planned.dims()),
                     "; the model declares a wrong type or shape; remove the declaration"));
  }

  absl::Status Cross(ValueId value, const Tensor& tensor) {
    ANEMONE_RETURN_IF_ERROR(CheckPlanned(value, tensor));
    const Value& planned = s_.graph_.values[value];
    const absl::Time start = Begun();
    math::Tally tally;
    ToSurface(tensor, s_.surfaces_.layout[value], SurfaceOf(value).data(),
              s_.watch_ == nullptr ? nullptr : s_.watch_->ForInput(tally));
    if (tally.overflowed > 0) {
      s_.watch_->Input(tally, tensor.elements(), planned.name, UnitThatReads(value));
    }
    if (trace_ != nullptr) Note("crossing", absl::StrCat("to engine: ", planned.name), start);
    if (hazards_ != nullptr) {
      hazards_->AddPort(s_.plan_.first_segment + ReaderOf(value), s_.graph_.values[value].name,
                        tensor, std::string(ValueOf(UnitThatReads(value))));
    }
    return absl::OkStatus();
  }

  // The engine segment that reads the value, or the surface that it is on, first.
  int ReaderOf(ValueId value) const {
    const std::vector<Segment>& segments = s_.plan_.segments;
    for (const Segment& segment : segments) {
      for (const RowWrite& write : RowWritesOf(s_.graph_, segment)) {
        if (write.past == value) return ReaderOf(write.present);
      }
    }
    const auto reads = [&](const Segment& segment) {
      return segment.placement == Placement::kEngine &&
             std::count(segment.inputs.begin(), segment.inputs.end(), value) > 0;
    };
    return static_cast<int>(std::find_if(segments.begin(), segments.end(), reads) -
                            segments.begin());
  }

  // The unit that reads the value first.
  std::string UnitThatReads(ValueId value) const {
    const Segment& segment = s_.plan_.segments[ReaderOf(value)];
    const auto port = std::find(segment.inputs.begin(), segment.inputs.end(), value);
    return anemone::ReaderOf(segment.network, static_cast<int>(port - segment.inputs.begin()));
  }

  const Surface& SurfaceOf(ValueId value) { return state_.surfaces[s_.surfaces_.slot[value]]; }

  // Only a trace needs times and names.
  absl::Time Begun() const { return trace_ != nullptr ? SteadyNow() : absl::Time(); }
  void Note(absl::string_view category, const std::string& name, absl::Time start) {
    trace_->Add(category, name, start, SteadyNow() - start);
  }

  void Start(int segment) {
    tasks_->run(WithMemoryLimit(WithDeadline([this, segment] { RunFrom(segment); })));
  }

  // Runs the segment, then one of those that waited for it, and so on. Starts the others.
  void RunFrom(int segment) {
    for (int next = segment; next >= 0;) {
      RunOne(next);
      const std::vector<int>& dependents = s_.dependents_[next];
      next = -1;
      for (const int dependent : dependents) {
        if (--waiting_[dependent] > 0) continue;
        if (next >= 0) Start(next);
        next = dependent;
      }
    }
  }

  void RunOne(int segment) {
    if (failed_) return;
    const absl::Time start = Begun();
    const auto label = [&]() -> std::string {
      const std::vector<NodeId>& nodes = s_.plan_.segments[segment].nodes;
      return nodes.empty() ? "" : ShortLabel(s_.graph_, s_.graph_.nodes[nodes.front()]);
    };
    const WorkPlace place(label);
    // An exception here would pass by PutBackRows().
    absl::Status status = Guarded("run the model", [&] { return RunByKind(segment); });
    if (status.ok()) status = CheckTime(Phase::kRun, label);
    if (trace_ != nullptr) {
      Note("segment",
           absl::StrCat(s_.programs_[segment] != nullptr ? "engine " : "CPU ",
                        s_.plan_.first_segment + segment),
           start);
    }
    if (!status.ok()) return Fail(std::move(status));
    for (ValueId v : s_.last_reads_[segment]) state_.values[v] = RunValue();
  }

  absl::Status RunByKind(int segment) {
    if (s_.programs_[segment] != nullptr) return RunProgram(segment);
    if (s_.control_flow_[segment] != nullptr) return RunControlFlow(segment);
    if (HasRowWrites(s_.graph_, s_.plan_.segments[segment])) return WriteRows(segment);
    return RunCpu(segment);
  }

  absl::Status RunProgram(int index) {
    const Segment& segment = s_.plan_.segments[index];
    constexpr size_t kFewPorts = 8;
    absl::InlinedVector<const std::byte*, kFewPorts> inputs;
    absl::InlinedVector<std::byte*, kFewPorts> outputs;
    std::vector<int64_t> input_bytes, output_bytes;
    for (ValueId v : s_.bound_inputs_[index]) {
      inputs.push_back(SurfaceOf(v).data());
      if (s_.heeds_limits_) input_bytes.push_back(SurfaceOf(v).bytes());
    }
    for (ValueId v : s_.bound_outputs_[index]) {
      outputs.push_back(SurfaceOf(v).data());
      if (s_.heeds_limits_) output_bytes.push_back(SurfaceOf(v).bytes());
    }
    std::function<void(absl::string_view, absl::string_view, absl::Duration)> on_unit =
        [this](absl::string_view unit, absl::string_view type, absl::Duration took) {
          trace_->Add("unit", absl::StrCat(type, " ", unit), SteadyNow() - took, took);
        };
    std::function<void(const UnitRun&)> on_values = [this, index](const UnitRun& run) {
      hazards_->AddUnit(s_.plan_.first_segment + index, run);
    };
    ANEMONE_RETURN_IF_ERROR(s_.device_.Run(*s_.programs_[index],
                                           {.inputs = inputs,
                                            .outputs = outputs,
                                            .on_unit = trace_ == nullptr ? nullptr : &on_unit,
                                            .on_values = hazards_ == nullptr ? nullptr : &on_values,
                                            .input_bytes = input_bytes,
                                            .output_bytes = output_bytes}));
    for (size_t i = 0; i < segment.outputs.size(); ++i) {
      const ValueId v = segment.outputs[i];
      if (Stays(v)) {  // NaNs are replaced as when it enters again
        if (Enters(v)) ReplaceNans(s_.surfaces_.layout[v], SurfaceOf(v).data());
        continue;
      }
      if (!s_.read_as_tensor_[v]) continue;
      const absl::Time start = Begun();
      const Value& value = s_.graph_.values[v];
      math::Tally tally;
      const TensorPool::Scope scope(state_.tensors);
      Tensor tensor = Tensor::Uninitialized(value.type, value.dims());
      FromSurface(SurfaceOf(v).data(), s_.surfaces_.layout[v], value.type, value.dims(),
                  tensor.mutable_data<std::byte>(),
                  s_.watch_ == nullptr ? nullptr : s_.watch_->ForOutput(tally));
      state_.values[v].tensor = tensor;
      if (tally.not_finite > 0) {
        s_.watch_->Output(tally, tensor.elements(), value.name,
                          MakerOf(segment.network, static_cast<int>(i)));
      }
      if (trace_ != nullptr) Note("crossing", absl::StrCat("from engine: ", value.name), start);
    }
    return absl::OkStatus();
  }

  absl::Status RunPlain(int index, const PlainPart& part) {
    const Segment& segment = s_.plan_.segments[index];
    std::vector<Tensor> inputs;
    for (ValueId v : segment.inputs) {
      ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, state_.values[v].ToTensor());
      if (s_.graph_.values[v].is_static()) ANEMONE_RETURN_IF_ERROR(CheckPlanned(v, tensor));
      inputs.push_back(std::move(tensor));
    }
    const TensorPool::Scope scope(state_.tensors);
    ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> results, part.Run(std::move(inputs)));
    for (size_t i = 0; i < results.size(); ++i) {
      ANEMONE_RETURN_IF_ERROR(Publish(segment.outputs[i], {std::move(results[i]), {}}));
    }
    return absl::OkStatus();
  }

  absl::Status RunCpu(int index) {
    const Segment& segment = s_.plan_.segments[index];
    const PlainPart* const plain = (*s_.cpu_parts_)[index].plain.get();
    if (plain != nullptr) return RunPlain(index, *plain);
    std::vector<CpuValue> inputs;
    for (ValueId v : segment.inputs) {
      ANEMONE_ASSIGN_OR_RETURN(CpuValue value, state_.values[v].ToCpuValue(s_.runtime_));
      inputs.push_back(std::move(value));
    }
    std::vector<CpuOutput> places(segment.outputs.size());
    auto results = (*s_.cpu_parts_)[index].segment->Run(inputs, places);
    if (!results.ok()) return WithFailedNode(results.status(), s_.graph_);
    for (size_t i = 0; i < results->size(); ++i) {
      ANEMONE_RETURN_IF_ERROR(Publish(segment.outputs[i], {Tensor(), std::move((*results)[i])}));
    }
    return absl::OkStatus();
  }

  absl::Status WriteRows(int index) {
    for (const NodeId id : s_.plan_.segments[index].nodes) {
      const Node& node = s_.graph_.nodes[id];
      absl::Status written = WriteRows(index, node);
      if (!written.ok()) return Annotated(written, ShortLabel(s_.graph_, node));
    }
    return absl::OkStatus();
  }

  absl::Status WriteRows(int index, const Node& node) {
    const absl::Time start = Begun();
    const RowWrite write = RowWriteOf(node);
    const Value &present = s_.graph_.values[write.present], &made = s_.graph_.values[write.rows];
    const SurfaceLayout& layout = s_.surfaces_.layout[write.past];
    ANEMONE_ASSIGN_OR_RETURN(const Tensor positions,
                             state_.ValueOf(s_.graph_, write.positions).ToTensor());
    const bool on_surface = s_.surfaces_.slot[write.rows] >= 0;
    Tensor tensor;
    Strided rows;
    if (on_surface) {
      rows = Strided::On(s_.surfaces_.layout[write.rows], made.dims());
    } else {
      ANEMONE_ASSIGN_OR_RETURN(tensor, state_.ValueOf(s_.graph_, write.rows).ToTensor());
      if (tensor.is_fill()) tensor = tensor.Copy();
      rows = Strided::Dense(tensor.type(), tensor.dims());
    }
    const std::byte* from = on_surface ? SurfaceOf(write.rows).data() : tensor.bytes().data();
    std::byte* const to = SurfaceOf(write.past).data();
    ANEMONE_ASSIGN_OR_RETURN(
        RowBlocks blocks,
        RowBlocks::Of(node, Strided::On(layout, present.dims()), rows, positions));
    state_.old_rows[index].push_back({blocks, blocks.Read(to), s_.surfaces_.slot[write.past]});
    math::Tally tally;
    blocks.Write(from, to, s_.watch_ == nullptr ? nullptr : s_.watch_->ForInput(tally));
    if (tally.overflowed > 0) {
      s_.watch_->Input(tally, blocks.elements(), made.name, UnitThatReads(write.present));
    }
    if (trace_ != nullptr) {
      Note("state",
           absl::StrCat("written to ", present.name, ": ", 2 * blocks.elements(), " bytes"), start);
    }
    if (Stays(write.present) || !s_.read_as_tensor_[write.present]) return absl::OkStatus();
    state_.values[write.present].tensor = FromSurface(to, layout, present.type, present.dims());
    return absl::OkStatus();
  }

  absl::Status RunControlFlow(int index) {
    const Node& node = s_.graph_.nodes[s_.plan_.segments[index].nodes.front()];
    std::vector<RunValue> inputs, captured;
    for (ValueId v : node.inputs) {
      inputs.push_back(v == kNone ? RunValue() : state_.ValueOf(s_.graph_, v));
    }
    for (ValueId v : node.captures) captured.push_back(state_.ValueOf(s_.graph_, v));
    ANEMONE_ASSIGN_OR_RETURN(std::vector<RunValue> results,
                             s_.control_flow_[index]->Run(inputs, captured, trace_, hazards_));
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] == kNone) continue;
      ANEMONE_RETURN_IF_ERROR(Publish(node.outputs[i], std::move(results[i])));
    }
    return absl::OkStatus();
  }

  void Fail(absl::Status status) {
    std::lock_guard<std::mutex> lock(error_mutex_);
    if (first_error_.ok()) first_error_ = std::move(status);
    failed_ = true;
  }

  Scheduler& s_;
  RunState& state_;
  Trace* trace_;
  HazardLog* hazards_;
  const Resident* resident_;
  // Unless the segments are a sequence; `waiting_`: by segment, dependencies that have not ended.
  std::vector<std::atomic<int>> waiting_;
  std::optional<tbb::task_group> tasks_;
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  absl::Status first_error_;
};

absl::StatusOr<std::vector<RunValue>> Scheduler::RunIn(RunState& state, absl::Span<RunValue> inputs,
                                                       absl::Span<const RunValue> captured,
                                                       Trace* trace, HazardLog* hazards,
                                                       Resident* resident) {
  state.Clear(graph_.values.size());
  state.old_rows.assign(plan_.segments.size(), {});
  const absl::Status ran = Runner(*this, state, trace, hazards, resident).Run(inputs, captured);
  if (!ran.ok()) PutBackRows(state);
  ANEMONE_RETURN_IF_ERROR(ran);
  std::vector<RunValue> outputs;
  outputs.reserve(graph_.outputs.size());
  for (auto v = graph_.outputs.begin(); v != graph_.outputs.end(); ++v) {
    const bool again = std::find(v + 1, graph_.outputs.end(), *v) != graph_.outputs.end();
    outputs.push_back(again ? state.ValueOf(graph_, *v) : state.TakeValue(graph_, *v));
  }
  state.Clear(graph_.values.size());
  return outputs;
}

absl::StatusOr<std::vector<RunValue>> Scheduler::RunAlone(absl::Span<RunValue> inputs,
                                                          absl::Span<const RunValue> captured,
                                                          Trace* trace, HazardLog* hazards) {
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<RunState> state, TakeState());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<RunValue> outputs,
                           RunIn(*state, inputs, captured, trace, hazards, nullptr));
  idle_.GiveBack(std::move(state));
  return outputs;
}

absl::StatusOr<std::vector<RunValue>> Scheduler::RunBody(absl::Span<const RunValue> inputs,
                                                         absl::Span<const RunValue> captured,
                                                         Trace* trace, HazardLog* hazards) {
  std::vector<RunValue> given(inputs.begin(), inputs.end());
  return RunAlone(absl::MakeSpan(given), captured, trace, hazards);
}

absl::StatusOr<std::vector<OnnxValue>> Scheduler::Run(std::vector<OnnxValue> inputs, Trace* trace,
                                                      HazardLog* hazards, Resident* resident) {
  std::vector<RunValue> given(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind == OnnxValue::Kind::kTensor) {
      const bool is_output = std::count(graph_.outputs.begin(), graph_.outputs.end(),
                                        graph_.inputs[i]) > 0;  // it is returned as it is
      given[i].tensor = is_output ? inputs[i].tensor : std::move(inputs[i].tensor);
    } else if (runtime_ != nullptr) {  // without ONNX Runtime no segment reads the value
      ANEMONE_ASSIGN_OR_RETURN(
          given[i].cpu,
          FromOnnxValue(runtime_, TypeOf(graph_.values[graph_.inputs[i]]), inputs[i]));
    }
  }
  const absl::Span<RunValue> taken = absl::MakeSpan(given);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<RunValue> made,
                           resident == nullptr
                               ? RunAlone(taken, {}, trace, hazards)
                               : RunIn(*resident->surfaces, taken, {}, trace, hazards, resident));
  std::vector<OnnxValue> outputs;
  outputs.reserve(made.size());
  for (size_t i = 0; i < made.size(); ++i) {
    const ValueId v = graph_.outputs[i];
    const auto input = std::find(graph_.inputs.begin(), graph_.inputs.end(), v);
    if (input != graph_.inputs.end()) {  // an output that is an input
      outputs.push_back(inputs[input - graph_.inputs.begin()]);
      continue;
    }
    if (resident != nullptr && IsOutputOf(*resident, v)) {
      outputs.emplace_back();
      continue;
    }
    auto output = std::move(made[i]).ToOnnxValue();
    if (!output.ok()) {
      if (resident != nullptr) PutBackRows(*resident->surfaces);
      return Annotated(output.status(), absl::StrCat("output '", graph_.values[v].name, "'"));
    }
    outputs.push_back(*std::move(output));
  }
  if (resident != nullptr) {
    ANEMONE_RETURN_IF_ERROR(Keep(*resident));
  }
  return outputs;
}

}  // namespace anemone
