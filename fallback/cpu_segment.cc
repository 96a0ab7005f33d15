#include "fallback/cpu_segment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
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
  std::unique_ptr<CpuSegment> segment(new CpuSegment(
      std::move(runtime), absl::StrCat("CPU segment at ", options.label), options.session));
  segment->may_miss_ = OptionalInputs(model);
  if (!segment->may_miss_.empty()) segment->model_ = model;
  auto session =
      CpuSession::FromModel(segment->runtime_, segment->where_, std::move(model), options.session);
  if (!session.ok()) {
    return absl::Status(
        session.status().code(),
        absl::StrCat(session.status().message(),
                     "; change the model, or set ANEMONE_ORT_LIBRARY to an ONNX Runtime that "
                     "has these operators"));
  }
  segment->session_ = *std::move(session);
  return segment;
}

absl::StatusOr<std::vector<CpuValue>> CpuSegment::Run(absl::Span<const CpuValue> inputs,
                                                      absl::Span<const CpuOutput> outputs) const {
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
