#include "fallback/cpu_segment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/operators/operators.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

// A node that creates an optional of `type` without a value.
onnx::NodeProto OptionalWithout(const onnx::TypeProto& type, const std::string& name) {
  onnx::NodeProto node;
  node.set_op_type("Optional");
  node.add_output(name);
  onnx::AttributeProto* const held = node.add_attribute();
  held->set_name("type");
  held->set_type(onnx::AttributeProto::TYPE_PROTO);
  *held->mutable_tp() = type.optional_type().elem_type();
  return node;
}

// The same model with each missing input replaced by an empty optional that it creates itself.
OnnxModel Without(OnnxModel model, const std::vector<bool>& missing) {
  onnx::GraphProto& graph = *model.proto.mutable_graph();
  const onnx::GraphProto whole = graph;
  graph.clear_input();
  graph.clear_node();
  for (int i = 0; i < whole.input_size(); ++i) {
    const onnx::ValueInfoProto& input = whole.input(i);
    if (missing[i]) {
      *graph.add_node() = OptionalWithout(input.type(), input.name());
    } else {
      *graph.add_input() = input;
    }
  }
  graph.mutable_node()->MergeFrom(whole.node());
  return model;
}

// By input, whether it may have no value; empty if none may.
std::vector<bool> OptionalInputs(const OnnxModel& model) {
  std::vector<bool> optional;
  for (const onnx::ValueInfoProto& input : model.proto.graph().input()) {
    optional.push_back(input.type().has_optional_type());
  }
  const bool any = std::find(optional.begin(), optional.end(), true) != optional.end();
  return any ? optional : std::vector<bool>();
}

// Operators that no fusion of ONNX Runtime begins with, besides those that move elements.
constexpr absl::string_view kUnfused[] = {
    "Add", "And", "Cast",  "Equal",     "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mul",
    "Not", "Or",  "Range", "ReduceSum", "Shape",   "Size",           "Sub",  "Where"};

// Fusions begin with products, normalizations, functions of floats and quantized nodes. To look for
// them is a third of the time to open a small session, so it is not done for a part that only
// prepares integers, masks and embeddings.
bool MayHaveFusions(const onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), [](const onnx::NodeProto& node) {
    const Operator* row = FindOperator(node.domain(), node.op_type());
    const bool moves = row != nullptr && row->moves != Moves::kNo;
    const bool is_known =
        node.domain().empty() &&
        std::find(std::begin(kUnfused), std::end(kUnfused), node.op_type()) != std::end(kUnfused);
    return !moves && !is_known;
  });
}

// ONNX Runtime has an operator if it fails while it makes the node from attributes and constants.
absl::string_view RemedyFor(const absl::Status& refused) {
  constexpr absl::string_view kMakesNode = "Exception during initialization";
  if (absl::StrContains(refused.message(), kMakesNode)) {
    return "; change the attributes and constants of the node";
  }
  return "; change the model, or set ANEMONE_ORT_LIBRARY to an ONNX Runtime that has these "
         "operators";
}

// In the place of an input that always has its default.
constexpr size_t kDefault = static_cast<size_t>(-1);

absl::StatusOr<size_t> PlaceOf(const std::string& name, absl::Span<const std::string> names,
                               absl::string_view where) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return found - names.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      where, ": ONNX Runtime reads it with other inputs or outputs than ours, such as '", name,
      "'"));
}

std::vector<std::string> NamesOf(const std::vector<CpuPort>& ports) {
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const CpuPort& port : ports) names.push_back(port.name);
  return names;
}

}  // namespace

std::string CpuSegment::LabelOf(const Graph& graph, absl::Span<const NodeId> nodes) {
  return ShortLabel(graph, graph.nodes[nodes.front()]);
}

absl::StatusOr<OnnxModel> CpuSegment::ModelOf(const Graph& graph, absl::Span<const NodeId> nodes,
                                              absl::Span<const ValueId> inputs,
                                              absl::Span<const ValueId> outputs) {
  ToOnnxOptions as;
  ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(graph, nodes));
  return ToOnnx(graph, nodes, inputs, outputs, as);
}

absl::StatusOr<std::unique_ptr<CpuSegment>> CpuSegment::Create(
    std::shared_ptr<const OrtRuntime> runtime, const Graph& graph, absl::Span<const NodeId> nodes,
    absl::Span<const ValueId> inputs, absl::Span<const ValueId> outputs,
    const CpuSegmentOptions& options) {
  if (nodes.empty()) {
    return absl::InvalidArgumentError("CPU segment: want at least one node, found none");
  }
  CpuSegmentOptions labelled = options;
  if (labelled.label.empty()) labelled.label = LabelOf(graph, nodes);
  ANEMONE_ASSIGN_OR_RETURN(OnnxModel model, ModelOf(graph, nodes, inputs, outputs));
  return FromModel(std::move(runtime), std::move(model), labelled);
}

absl::StatusOr<std::unique_ptr<CpuSegment>> CpuSegment::FromModel(
    std::shared_ptr<const OrtRuntime> runtime, OnnxModel model, const CpuSegmentOptions& options) {
  CpuSessionOptions opening = options.session;
  if (!MayHaveFusions(model.proto.graph())) opening.optimization = OrtOptimization::kBasic;
  std::unique_ptr<CpuSegment> segment(
      new CpuSegment(std::move(runtime), absl::StrCat("CPU segment at ", options.label), opening));
  segment->may_miss_ = OptionalInputs(model);
  if (!segment->may_miss_.empty()) segment->model_ = model;
  auto session =
      CpuSession::FromModel(segment->runtime_, segment->where_, std::move(model), opening);
  if (!session.ok()) {
    return absl::Status(session.status().code(),
                        absl::StrCat(session.status().message(), RemedyFor(session.status())));
  }
  segment->session_ = *std::move(session);
  return segment;
}

absl::StatusOr<std::unique_ptr<CpuSegment>> CpuSegment::FromFile(
    std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file,
    absl::Span<const std::string> inputs, absl::Span<const std::string> outputs) {
  ANEMONE_ASSIGN_OR_RETURN(auto session, CpuSession::FromFile(runtime, file, {}));
  return Of(std::move(runtime), file, std::move(session), inputs, outputs);
}

absl::StatusOr<std::unique_ptr<CpuSegment>> CpuSegment::FromFile(
    std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file) {
  ANEMONE_ASSIGN_OR_RETURN(auto session, CpuSession::FromFile(runtime, file, {}));
  const std::vector<std::string> inputs = NamesOf(session->inputs());
  std::vector<std::string> outputs = NamesOf(session->outputs());
  const auto is_input = [&](const std::string& name) {
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  };
  outputs.erase(std::remove_if(outputs.begin(), outputs.end(), is_input), outputs.end());
  return Of(std::move(runtime), file, std::move(session), inputs, outputs);
}

absl::StatusOr<std::unique_ptr<CpuSegment>> CpuSegment::Of(
    std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file,
    std::unique_ptr<CpuSession> session, absl::Span<const std::string> inputs,
    absl::Span<const std::string> outputs) {
  std::unique_ptr<CpuSegment> segment(new CpuSegment(std::move(runtime), file.path, {}));
  for (const CpuPort& port : session->inputs()) {  // Run() would need the model without it
    if (port.kind == CpuValue::Kind::kOther) {
      return absl::InvalidArgumentError(absl::StrCat(file.path, ": has an optional input"));
    }
  }
  for (const CpuPort& port : session->inputs()) {
    auto place = PlaceOf(port.name, inputs, file.path);
    if (!place.ok() && !port.has_default) return place.status();
    segment->input_order_.push_back(place.value_or(kDefault));
  }
  const std::vector<std::string> made = NamesOf(session->outputs());
  for (const std::string& name : outputs) {
    ANEMONE_ASSIGN_OR_RETURN(segment->output_order_.emplace_back(), PlaceOf(name, made, file.path));
  }
  segment->session_ = std::move(session);
  return segment;
}

absl::StatusOr<std::vector<CpuValue>> CpuSegment::RunFile(
    absl::Span<const CpuValue> inputs, absl::Span<const CpuOutput> outputs) const {
  std::vector<CpuValue> given;
  given.reserve(input_order_.size());
  for (size_t place : input_order_) {
    given.push_back(place == kDefault ? CpuValue() : inputs[place]);
  }
  std::vector<CpuOutput> places(session_->outputs().size());
  for (size_t i = 0; i < outputs.size(); ++i) places[output_order_[i]] = outputs[i];
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<CpuValue> made, session_->Run(given, places));
  std::vector<CpuValue> results;
  results.reserve(outputs.size());
  for (size_t place : output_order_) results.push_back(made[place]);
  return results;
}

absl::StatusOr<std::vector<CpuValue>> CpuSegment::Run(absl::Span<const CpuValue> inputs,
                                                      absl::Span<const CpuOutput> outputs) const {
  if (!output_order_.empty()) return RunFile(inputs, outputs);
  if (may_miss_.empty()) return session_->Run(inputs, outputs);
  std::vector<bool> missing(inputs.size());
  std::vector<CpuValue> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    missing[i] =
        i < may_miss_.size() && may_miss_[i] && inputs[i].kind() == CpuValue::Kind::kNothing;
    if (!missing[i]) given.push_back(inputs[i]);
  }
  if (given.size() == inputs.size()) return session_->Run(inputs, outputs);
  ANEMONE_ASSIGN_OR_RETURN(const CpuSession* session, SessionWithout(missing));
  return session->Run(given, outputs);
}

absl::StatusOr<const CpuSession*> CpuSegment::SessionWithout(
    const std::vector<bool>& missing) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<CpuSession>& session = without_[missing];
  if (session == nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(
        session, CpuSession::FromModel(runtime_, where_, Without(model_, missing), options_));
  }
  return session.get();
}

}  // namespace anemone
