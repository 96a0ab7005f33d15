#include "provider/scheduler.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status_macros.h"
#include "device_limit_table.h"  // generated
#include "importer/opset/opsets.h"
#include "provider/run_state.h"

namespace anemone {
namespace {

// A body is given an input that is not a tensor as a value of ONNX Runtime.
bool NeedsRuntime(const Graph& graph, const Plan& plan, const std::vector<CpuPart>& cpu_parts) {
  const bool has_sessions =
      std::any_of(cpu_parts.begin(), cpu_parts.end(),
                  [](const CpuPart& part) { return part.segment != nullptr; });
  const bool has_bodies =
      std::any_of(plan.segments.begin(), plan.segments.end(),
                  [](const Segment& segment) { return !segment.bodies.empty(); });
  const bool has_others = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId v) {
    return graph.values[v].type == DataType::kUndefined;
  });
  return has_sessions || (has_bodies && has_others);
}

}  // namespace

Scheduler::Scheduler(const Graph& graph, const Plan& plan, Device& device, bool heeds_limits,
                     RangeWatch* watch)
    : graph_(graph), plan_(plan), device_(device), heeds_limits_(heeds_limits), watch_(watch) {}

Scheduler::Scheduler(const Scheduler&) = default;
Scheduler::~Scheduler() = default;

// Stores the values of a segment's ports in the order of its program (the last of programs_).
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

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Make(const Graph& graph, const Plan& plan,
                                                           Device& device, RuntimeSource runtime,
                                                           bool heeds_limits, RangeWatch* watch,
                                                           std::vector<CpuPart> cpu_parts,
                                                           const MakeProgram& make) {
  std::unique_ptr<Scheduler> s(new Scheduler(graph, plan, device, heeds_limits, watch));
  absl::Status opened;
  const auto open = [&] {
    auto got = runtime();
    opened = got.status();
    if (got.ok()) s->runtime_ = *got;
    return got;
  };
  if (NeedsRuntime(graph, plan, cpu_parts)) ANEMONE_RETURN_IF_ERROR(open().status());
  s->cpu_parts_ = std::make_shared<const std::vector<CpuPart>>(std::move(cpu_parts));
  s->dependencies_ = DependenciesOf(plan, graph);
  s->dependents_.resize(plan.segments.size());
  s->last_reads_ = LastReadsOf(plan, graph, s->dependencies_);
  s->surfaces_ = PlanSurfaces(plan, graph, s->dependencies_, device.port_route(plan.route));
  std::vector<int64_t>& bytes = s->surfaces_.bytes;
  if (heeds_limits && !bytes.empty()) {
    const int64_t most = *std::max_element(bytes.begin(), bytes.end());
    bytes.assign(bytes.size(), std::max(most, device_limit::kSurfaceFloor.value));
  }
  s->read_on_cpu_.resize(graph.values.size());
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    const std::vector<int>& before = s->dependencies_[i];
    for (int d : before) s->dependents_[d].push_back(static_cast<int>(i));
    s->is_sequence_ &= i == 0 || std::count(before.begin(), before.end(), i - 1) > 0;
    s->programs_.emplace_back();
    s->control_flow_.emplace_back();
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kCompile, [&] {
      return segment.nodes.empty() ? "" : ShortLabel(graph, graph.nodes[segment.nodes[0]]);
    }));
    if (segment.placement == Placement::kEngine) {
      if (make) {
        ANEMONE_ASSIGN_OR_RETURN(s->programs_.back(), make(static_cast<int>(i), segment.network));
      } else {
        ANEMONE_ASSIGN_OR_RETURN(s->programs_.back(),
                                 device.Compile(segment.network, *plan.target, plan.route));
      }
      s->BindPorts(segment);
      continue;
    }
    s->BindPorts(segment);
    const std::vector<RowWrite> writes = RowWritesOf(graph, segment);
    for (const RowWrite& write : writes) s->read_on_cpu_[write.positions] = true;
    if (!writes.empty()) continue;
    for (ValueId v : segment.inputs) s->read_on_cpu_[v] = true;
    if (segment.bodies.empty()) continue;
    ANEMONE_ASSIGN_OR_RETURN(s->control_flow_.back(),
                             ControlFlow::Make(graph, segment, device, open, heeds_limits, watch));
    ANEMONE_RETURN_IF_ERROR(opened);  // a branch of an If waits with its other errors
  }
  s->read_as_tensor_ = s->read_on_cpu_;
  for (ValueId v : graph.outputs) s->read_as_tensor_[v] = true;
  return s;
}

std::unique_ptr<Scheduler> Scheduler::With(
    const std::map<int, std::shared_ptr<const Program>>& programs,
    const std::map<int, std::shared_ptr<const PlainPart>>& plain_parts) const {
  std::unique_ptr<Scheduler> s(new Scheduler(*this));
  for (const auto& [segment, program] : programs) s->programs_[segment] = program;
  if (plain_parts.empty()) return s;
  std::vector<CpuPart> parts;
  for (const CpuPart& part : *cpu_parts_) {
    parts.push_back({.model = {}, .segment = part.segment, .plain = part.plain});
  }
  for (const auto& [segment, part] : plain_parts) parts[segment].plain = part;
  s->cpu_parts_ = std::make_shared<const std::vector<CpuPart>>(std::move(parts));
  return s;
}

absl::StatusOr<std::unique_ptr<Scheduler::RunState>> Scheduler::MakeState(
    absl::Span<const int64_t> bytes) const {
  auto state = std::make_unique<RunState>();
  for (int64_t size : bytes) {
    ANEMONE_ASSIGN_OR_RETURN(Surface surface, Surface::Allocate(size));
    state->surfaces.push_back(std::move(surface));
  }
  return state;
}

absl::StatusOr<std::unique_ptr<Scheduler::RunState>> Scheduler::TakeState() {
  if (auto idle = idle_.Take()) return *std::move(idle);
  return MakeState(surfaces_.bytes);
}

}  // namespace anemone
