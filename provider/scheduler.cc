#include "provider/scheduler.h"

#include <tbb/task_group.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "anemone/status_macros.h"
#include "fallback/from_onnx_value.h"
#include "importer/to_onnx.h"
#include "provider/crossing.h"

namespace anemone {

// What one run owns.
struct Scheduler::RunState {
  std::vector<Surface> surfaces;  // by slot
  // By value: what comes from outside or from the engine, and what CPU segments made.
  std::vector<Tensor> tensors;
  std::vector<CpuValue> cpu_values;

  absl::StatusOr<OnnxValue> ValueOf(ValueId value) const {
    if (tensors[value].type() != DataType::kUndefined) return OnnxValue(tensors[value]);
    return cpu_values[value].ToValue();
  }
};

// One run: starts each segment when the last one it waits for has ended.
class Scheduler::Runner {
 public:
  Runner(Scheduler& scheduler, RunState& state, Trace* trace, HazardLog* hazards)
      : s_(scheduler),
        state_(state),
        trace_(trace),
        hazards_(hazards),
        waiting_(scheduler.plan_.segments.size()) {}

  absl::Status Run(const std::vector<OnnxValue>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      ANEMONE_RETURN_IF_ERROR(Publish(s_.graph_.inputs[i], inputs[i]));
    }
    for (size_t i = 0; i < waiting_.size(); ++i) {
      waiting_[i] = static_cast<int>(s_.dependencies_[i].size());
    }
    for (size_t i = 0; i < waiting_.size(); ++i) {
      if (s_.dependencies_[i].empty()) Start(static_cast<int>(i));
    }
    tasks_.wait();
    return first_error_;
  }

 private:
  // An input goes to wherever it is read; only the CPU reads one that is no tensor.
  absl::Status Publish(ValueId value, const OnnxValue& input) {
    if (input.kind != OnnxValue::Kind::kTensor) {
      if (s_.runtime_ == nullptr) return absl::OkStatus();  // nobody reads it
      ANEMONE_ASSIGN_OR_RETURN(state_.cpu_values[value],
                               FromOnnxValue(s_.runtime_, TypeOf(s_.graph_.values[value]), input));
      return absl::OkStatus();
    }
    if (s_.surfaces_.slot[value] >= 0) Cross(value, input.tensor);
    state_.tensors[value] = input.tensor;
    return absl::OkStatus();
  }

  void Cross(ValueId value, const Tensor& tensor) {
    absl::Time start = absl::Now();
    ToSurface(tensor, s_.surfaces_.layout[value], SurfaceOf(value).data());
    Note("crossing", absl::StrCat("to engine: ", s_.graph_.values[value].name), start);
    if (hazards_ != nullptr) hazards_->AddPort(value, tensor);
  }

  const Surface& SurfaceOf(ValueId value) { return state_.surfaces[s_.surfaces_.slot[value]]; }

  void Note(absl::string_view category, const std::string& name, absl::Time start) {
    if (trace_ != nullptr) trace_->Add(category, name, start, absl::Now() - start);
  }

  void Start(int segment) {
    tasks_.run([this, segment] {
      absl::Time start = absl::Now();
      bool on_engine = s_.programs_[segment] != nullptr;
      absl::Status status = failed_     ? absl::OkStatus()
                            : on_engine ? RunProgram(segment)
                                        : RunCpu(segment);
      Note("segment", absl::StrCat(on_engine ? "engine " : "CPU ", segment), start);
      if (!status.ok()) Fail(std::move(status));
      for (int next : s_.dependents_[segment]) {
        if (--waiting_[next] == 0) Start(next);
      }
    });
  }

  absl::Status RunProgram(int index) {
    const Segment& segment = s_.plan_.segments[index];
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
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
          trace_->Add("unit", absl::StrCat(type, " ", unit), absl::Now() - took, took);
        };
    std::function<void(const UnitRun&)> on_values = [this, index](const UnitRun& run) {
      hazards_->AddUnit(index, run);
    };
    ANEMONE_RETURN_IF_ERROR(s_.device_.Run(*s_.programs_[index],
                                           {.inputs = inputs,
                                            .outputs = outputs,
                                            .on_unit = trace_ == nullptr ? nullptr : &on_unit,
                                            .on_values = hazards_ == nullptr ? nullptr : &on_values,
                                            .input_bytes = input_bytes,
                                            .output_bytes = output_bytes}));
    for (ValueId v : segment.outputs) {
      if (!s_.read_as_tensor_[v]) continue;
      absl::Time start = absl::Now();
      const Value& value = s_.graph_.values[v];
      state_.tensors[v] =
          FromSurface(SurfaceOf(v).data(), s_.surfaces_.layout[v], value.type, value.dims());
      Note("crossing", absl::StrCat("from engine: ", value.name), start);
    }
    return absl::OkStatus();
  }

  absl::Status RunCpu(int index) {
    const Segment& segment = s_.plan_.segments[index];
    std::vector<CpuValue> inputs;
    for (ValueId v : segment.inputs) {
      if (state_.tensors[v].type() == DataType::kUndefined) {
        inputs.push_back(state_.cpu_values[v]);
        continue;
      }
      ANEMONE_ASSIGN_OR_RETURN(CpuValue value,
                               CpuValue::FromTensor(s_.runtime_, state_.tensors[v]));
      inputs.push_back(std::move(value));
    }
    std::vector<CpuOutput> places(segment.outputs.size());
    ANEMONE_ASSIGN_OR_RETURN(std::vector<CpuValue> results,
                             s_.cpu_segments_[index]->Run(inputs, places));
    for (size_t i = 0; i < results.size(); ++i) {
      ValueId v = segment.outputs[i];
      if (s_.surfaces_.slot[v] >= 0) {
        ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, results[i].ToTensor());
        if (tensor.dims() != s_.graph_.values[v].dims()) {
          return absl::InternalError(absl::StrCat(
              "value '", s_.graph_.values[v].name, "': made as ", DimsToString(tensor.dims()),
              ", planned as ", DimsToString(s_.graph_.values[v].dims())));
        }
        Cross(v, tensor);
      }
      state_.cpu_values[v] = std::move(results[i]);
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
  std::vector<std::atomic<int>> waiting_;  // by segment: dependencies that have not ended
  tbb::task_group tasks_;
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  absl::Status first_error_;
};

Scheduler::Scheduler(const Graph& graph, const Plan& plan, Device& device,
                     std::shared_ptr<const OrtRuntime> runtime, bool heeds_limits)
    : graph_(graph),
      plan_(plan),
      device_(device),
      runtime_(std::move(runtime)),
      heeds_limits_(heeds_limits) {}

Scheduler::~Scheduler() = default;

// The values of a segment's ports, in the order in which its program, the last made, takes them.
void Scheduler::BindPorts(const Segment& segment) {
  bound_inputs_.push_back(segment.inputs);
  bound_outputs_.push_back(segment.outputs);
  if (!heeds_limits_ || programs_.back() == nullptr) return;
  auto bind = [](const auto& network_ports, const std::vector<ProgramPort>& program_ports,
                 const std::vector<ValueId>& values, std::vector<ValueId>& bound) {
    for (size_t i = 0; i < program_ports.size(); ++i) {
      auto port = std::find_if(network_ports.begin(), network_ports.end(),
                               [&](const auto& p) { return p.name == program_ports[i].name; });
      bound[i] = values[port - network_ports.begin()];
    }
  };
  const Program& program = *programs_.back();
  bind(segment.network.inputs, program.inputs(), segment.inputs, bound_inputs_.back());
  bind(segment.network.outputs, program.outputs(), segment.outputs, bound_outputs_.back());
}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Make(
    const Graph& graph, const Plan& plan, Device& device, std::shared_ptr<const OrtRuntime> runtime,
    bool heeds_limits) {
  std::unique_ptr<Scheduler> s(
      new Scheduler(graph, plan, device, std::move(runtime), heeds_limits));
  s->dependencies_ = DependenciesOf(plan, graph);
  s->dependents_.resize(plan.segments.size());
  s->surfaces_ = PlanSurfaces(plan, graph, s->dependencies_);
  std::vector<int64_t>& bytes = s->surfaces_.bytes;
  if (heeds_limits && !bytes.empty()) {
    bytes.assign(bytes.size(), *std::max_element(bytes.begin(), bytes.end()));
  }
  s->read_as_tensor_.resize(graph.values.size());
  for (ValueId v : graph.outputs) s->read_as_tensor_[v] = true;
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    for (int d : s->dependencies_[i]) s->dependents_[d].push_back(static_cast<int>(i));
    s->programs_.emplace_back();
    s->cpu_segments_.emplace_back();
    if (segment.placement == Placement::kEngine) {
      ANEMONE_ASSIGN_OR_RETURN(s->programs_.back(),
                               device.Compile(segment.network, *plan.target, plan.route));
      s->BindPorts(segment);
      continue;
    }
    s->BindPorts(segment);
    for (ValueId v : segment.inputs) s->read_as_tensor_[v] = true;
    ANEMONE_ASSIGN_OR_RETURN(
        s->cpu_segments_.back(),
        CpuSegment::Create(s->runtime_, graph, segment.nodes, segment.inputs, segment.outputs, {}));
  }
  return s;
}

absl::StatusOr<std::unique_ptr<Scheduler::RunState>> Scheduler::TakeState() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<RunState> state = std::move(idle_.back());
      idle_.pop_back();
      return state;
    }
  }
  auto state = std::make_unique<RunState>();
  for (int64_t bytes : surfaces_.bytes) {
    ANEMONE_ASSIGN_OR_RETURN(Surface surface, Surface::Allocate(bytes));
    state->surfaces.push_back(std::move(surface));
  }
  return state;
}

absl::StatusOr<std::vector<OnnxValue>> Scheduler::Run(const std::vector<OnnxValue>& inputs,
                                                      Trace* trace, HazardLog* hazards) {
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<RunState> state, TakeState());
  state->tensors.assign(graph_.values.size(), Tensor());
  state->cpu_values.assign(graph_.values.size(), CpuValue());
  ANEMONE_RETURN_IF_ERROR(Runner(*this, *state, trace, hazards).Run(inputs));
  std::vector<OnnxValue> outputs;
  for (ValueId v : graph_.outputs) {
    const Value& value = graph_.values[v];
    if (value.constant) {
      outputs.emplace_back(*value.constant);
      continue;
    }
    if (value.producer == kNone) {  // an input, as it is
      const auto input = std::find(graph_.inputs.begin(), graph_.inputs.end(), v);
      outputs.push_back(inputs[input - graph_.inputs.begin()]);
      continue;
    }
    auto made = state->ValueOf(v);
    if (!made.ok()) {
      return absl::Status(
          made.status().code(),
          absl::StrCat("output '", value.name, "': ", std::string(made.status().message())));
    }
    outputs.push_back(*std::move(made));
  }
  state->tensors.clear();
  state->cpu_values.clear();
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(state));
  return outputs;
}

}  // namespace anemone
