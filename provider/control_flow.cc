#include "provider/control_flow.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/bool_element.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "importer/infer/trips.h"
#include "importer/opset/opsets.h"
#include "kernels/attributes.h"
#include "provider/buckets/scan_axis.h"
#include "provider/scheduler.h"

namespace anemone {
namespace {

absl::StatusOr<bool> Truth(const RunValue& value) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor tensor, value.ToTensor());
  if (IsOneBool(tensor)) return BoolAt(tensor, 0);
  return absl::InvalidArgumentError(
      absl::StrCat("condition: want one bool, found ", DataTypeName(tensor.type()), " ",
                   DimsToString(tensor.dims()), "; correct the model"));
}

// Bodies may declare their counter or condition as a vector of one element.
std::vector<int64_t> DimsOfOne(const Value& value) {
  return std::vector<int64_t>(value.shape.has_value() ? value.shape->size() : 0, 1);
}

}  // namespace

struct ControlFlow::Call {
  absl::Span<const RunValue> inputs, captured;
  Trace* trace;
  HazardLog* hazards;
};

struct ControlFlow::Body {
  const Graph* graph;
  size_t first_capture;  // of the node's
  absl::StatusOr<std::unique_ptr<Scheduler>> scheduler;
};

// The results of each iteration for the scan outputs: body outputs from `first` on.
class ControlFlow::Stacks {
 public:
  Stacks(const Graph& body, size_t first)
      : body_(body), first_(first), made_(body.outputs.size() - first) {}

  absl::Status Add(absl::Span<const RunValue> results) {
    for (size_t i = 0; i < made_.size(); ++i) {
      ANEMONE_ASSIGN_OR_RETURN(made_[i].emplace_back(), results[first_ + i].ToTensor());
      const auto bytes = static_cast<int64_t>(made_[i].back().bytes().size());
      uncounted_ += kAroundTensor + (bytes < kCountedAlone ? bytes : 0);
    }
    if (uncounted_ >= kTakenAtOnce) taken_.push_back(TakeMemory(std::exchange(uncounted_, 0)));
    return absl::OkStatus();
  }

  // Stacks each output along its entry of `axes`, in reverse order if its entry of `backwards` is
  // nonzero. Missing entries are 0.
  absl::Status TakeInto(std::vector<int64_t> axes, std::vector<int64_t> backwards,
                        std::vector<RunValue>& outputs) {
    axes.resize(made_.size());
    backwards.resize(made_.size());
    for (size_t i = 0; i < made_.size(); ++i) {
      absl::StatusOr<Tensor> stack = Take(i, axes[i], backwards[i] != 0);
      if (!stack.ok()) {
        const std::string& name = body_.values[body_.outputs[first_ + i]].name;
        return Annotated(stack.status(), absl::StrCat("output '", name, "'"));
      }
      outputs.push_back({*std::move(stack), {}});
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Tensor> Take(size_t i, int64_t axis, bool backwards) {
    std::vector<Tensor>& parts = made_[i];
    if (parts.empty()) return Empty(body_.values[body_.outputs[first_ + i]], axis);
    if (backwards) std::reverse(parts.begin(), parts.end());
    ANEMONE_ASSIGN_OR_RETURN(const int at,
                             NormalAxis(axis, static_cast<int64_t>(parts[0].dims().size()) + 1));
    return StackAt(parts, at);
  }

  // The output after no iteration. Unknown sizes are 0, as in ONNX Runtime.
  static absl::StatusOr<Tensor> Empty(const Value& value, int64_t axis) {
    if (value.type == DataType::kUndefined) {
      return absl::InvalidArgumentError(
          "its type is not known, because there was no iteration; declare it in the body");
    }
    const Shape shape = value.shape.value_or(Shape());
    std::vector<int64_t> dims(shape.size());
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = shape[i].known() ? shape[i].size : 0;
    ANEMONE_ASSIGN_OR_RETURN(const int at, NormalAxis(axis, static_cast<int64_t>(dims.size()) + 1));
    dims.insert(dims.begin() + at, 0);
    if (value.type == DataType::kString) return Tensor::Strings(std::move(dims), {});
    return Tensor::Zeros(value.type, std::move(dims));
  }

  const Graph& body_;
  const size_t first_;
  std::vector<std::vector<Tensor>> made_;  // by output and iteration
  // Many small results are much together: shares of the memory limit, and bytes without one.
  static constexpr int64_t kAroundTensor = 256, kCountedAlone = 4096, kTakenAtOnce = 1 << 16;
  std::vector<std::shared_ptr<const void>> taken_;
  int64_t uncounted_ = 0;
};

ControlFlow::ControlFlow(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}
ControlFlow::~ControlFlow() = default;

absl::StatusOr<std::unique_ptr<ControlFlow>> ControlFlow::Make(
    const Graph& graph, const Segment& segment, Device& device, RuntimeSource runtime,
    bool heeds_limits, RangeWatch* watch) {
  const Node& node = graph.nodes[segment.nodes.front()];
  std::unique_ptr<ControlFlow> made(new ControlFlow(graph, node));
  size_t first_capture = 0;
  for (const PlannedBody& body : segment.bodies) {
    const auto make = [&]() -> absl::StatusOr<std::unique_ptr<Scheduler>> {
      ANEMONE_ASSIGN_OR_RETURN(std::vector<CpuPart> parts,
                               MakeCpuParts(runtime, *body.graph, body.plan, nullptr));
      return Scheduler::Make(*body.graph, body.plan, device, runtime, heeds_limits, watch,
                             std::move(parts));
    };
    auto scheduler = make();
    const bool may_wait = node.op_type == "If" && !absl::IsResourceExhausted(scheduler.status()) &&
                          !absl::IsUnavailable(scheduler.status()) &&
                          !IsOutOfTime(scheduler.status());
    if (!scheduler.ok() && !may_wait) {
      return Annotated(scheduler.status(), absl::StrCat(ShortLabel(graph, node), ", body"));
    }
    made->bodies_.push_back({body.graph.get(), first_capture, std::move(scheduler)});
    first_capture += body.graph->captures.size();
  }
  return made;
}

absl::StatusOr<std::vector<RunValue>> ControlFlow::Run(absl::Span<const RunValue> inputs,
                                                       absl::Span<const RunValue> captured,
                                                       Trace* trace, HazardLog* hazards) const {
  const Call call{inputs, captured, trace, hazards};
  auto results = node_.op_type == "If"     ? RunIf(call)
                 : node_.op_type == "Loop" ? RunLoop(call)
                                           : RunScan(call);
  if (!results.ok()) return Annotated(results.status(), ShortLabel(graph_, node_));
  return results;
}

absl::StatusOr<std::vector<RunValue>> ControlFlow::RunBody(const Body& body,
                                                           absl::Span<const RunValue> inputs,
                                                           const Call& call) const {
  ANEMONE_RETURN_IF_ERROR(body.scheduler.status());
  return (*body.scheduler)
      ->RunBody(inputs, call.captured.subspan(body.first_capture, body.graph->captures.size()),
                call.trace, call.hazards);
}

absl::StatusOr<std::vector<RunValue>> ControlFlow::RunIteration(int64_t number,
                                                                absl::Span<const RunValue> given,
                                                                Stacks& stacks,
                                                                const Call& call) const {
  ANEMONE_RETURN_IF_ERROR(
      CheckTime(Phase::kRun, [&] { return absl::StrCat("iteration ", number); }));
  auto results = RunBody(bodies_.front(), given, call);
  const absl::Status status = results.ok() ? stacks.Add(*results) : results.status();
  if (status.ok()) return results;
  return Annotated(status, absl::StrCat("iteration ", number));
}

absl::StatusOr<std::vector<RunValue>> ControlFlow::RunIf(const Call& call) const {
  ANEMONE_ASSIGN_OR_RETURN(const bool condition, Truth(call.inputs[0]));
  const Attribute* taken = node_.FindAttribute(condition ? "then_branch" : "else_branch");
  const Graph* branch = std::get<Attribute::GraphPtr>(taken->value).get();
  const auto body = std::find_if(bodies_.begin(), bodies_.end(),
                                 [&](const Body& b) { return b.graph == branch; });
  return RunBody(*body, {}, call);
}

absl::StatusOr<std::vector<RunValue>> ControlFlow::RunLoop(const Call& call) const {
  const Graph& body = *bodies_.front().graph;
  int64_t trips = std::numeric_limits<int64_t>::max();
  if (HasInput(node_, 0)) {
    ANEMONE_ASSIGN_OR_RETURN(const Tensor limit, call.inputs[0].ToTensor());
    if (limit.type() != DataType::kInt64 || limit.elements() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("trip count: want one int64, found ", DataTypeName(limit.type()), " ",
                       DimsToString(limit.dims()), "; correct the model"));
    }
    trips = limit.at<int64_t>(0);
  }
  // The body's inputs: the iteration number, the condition, the loop-carried values.
  std::vector<RunValue> given(call.inputs.begin(), call.inputs.end());
  const std::vector<int64_t> counter_dims = DimsOfOne(body.values[body.inputs[0]]);
  if (!HasInput(node_, 1)) {
    const std::array<bool, 1> yes = {true};
    given[1].tensor =
        Tensor::Of<bool>(DataType::kBool, DimsOfOne(body.values[body.inputs[1]]), yes);
  }
  Stacks stacks(body, given.size() - 1);
  for (int64_t i = 0; i < trips; ++i) {
    ANEMONE_ASSIGN_OR_RETURN(const bool goes_on, Truth(given[1]));
    if (!goes_on) break;
    given[0] = {Tensor::Int64s(counter_dims, {i}), {}};
    ANEMONE_ASSIGN_OR_RETURN(std::vector<RunValue> results, RunIteration(i, given, stacks, call));
    std::move(results.begin(), results.begin() + static_cast<int64_t>(given.size()) - 1,
              given.begin() + 1);
  }
  std::vector<RunValue> outputs(given.begin() + 2, given.end());
  ANEMONE_RETURN_IF_ERROR(stacks.TakeInto({}, {}, outputs));
  return outputs;
}

absl::StatusOr<std::vector<RunValue>> ControlFlow::RunScan(const Call& call) const {
  const size_t carried = CarriedOf(node_);
  const std::vector<int64_t> axes = ScanInputAxes(node_);
  const std::vector<int64_t> backwards = ScanInputDirections(node_);
  std::vector<Tensor> scanned;
  std::vector<int> at;
  for (size_t i = 0; i < axes.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(scanned.emplace_back(), call.inputs[carried + i].ToTensor());
    ANEMONE_ASSIGN_OR_RETURN(at.emplace_back(),
                             NormalAxis(axes[i], static_cast<int64_t>(scanned[i].dims().size())));
    const int64_t length = scanned[i].dims()[at[i]];
    if (length == scanned[0].dims()[at[0]]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("scan inputs: want the same length for all, found ", scanned[0].dims()[at[0]],
                     " and ", length, "; correct the model or its inputs"));
  }
  const int64_t length = scanned[0].dims()[at[0]];
  std::vector<RunValue> given(call.inputs.begin(), call.inputs.end());
  Stacks stacks(*bodies_.front().graph, carried);
  for (int64_t i = 0; i < length; ++i) {
    for (size_t j = 0; j < scanned.size(); ++j) {
      const int64_t index = backwards[j] != 0 ? length - 1 - i : i;
      ANEMONE_ASSIGN_OR_RETURN(Tensor slice, SliceAt(scanned[j], at[j], index));
      given[carried + j] = {std::move(slice), {}};
    }
    ANEMONE_ASSIGN_OR_RETURN(std::vector<RunValue> results, RunIteration(i, given, stacks, call));
    std::move(results.begin(), results.begin() + static_cast<int64_t>(carried), given.begin());
  }
  std::vector<RunValue> outputs(given.begin(), given.begin() + static_cast<int64_t>(carried));
  ANEMONE_RETURN_IF_ERROR(
      stacks.TakeInto(ScanOutputAxes(node_), ScanOutputDirections(node_), outputs));
  return outputs;
}

}  // namespace anemone
