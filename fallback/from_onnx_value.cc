#include "fallback/from_onnx_value.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "fallback/cpu_session.h"
#include "importer/importer.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

absl::StatusOr<CpuValue> EmptySequence(const std::shared_ptr<const OrtRuntime>& runtime,
                                       const onnx::TypeProto& type) {
  constexpr absl::string_view kWhere = "a sequence without elements";
  if (!type.sequence_type().elem_type().has_tensor_type()) {
    return absl::UnimplementedError(
        "a sequence without elements: ONNX Runtime cannot create an empty sequence of maps; "
        "pass at least one element");
  }
  OnnxModel model;
  model.proto.set_ir_version(kWorkingIrVersion);
  model.proto.add_opset_import()->set_version(kWorkingOpset);
  onnx::GraphProto& graph = *model.proto.mutable_graph();
  graph.set_name("empty");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("SequenceEmpty");
  node.add_output("empty");
  onnx::AttributeProto& element = *node.add_attribute();
  element.set_name("dtype");
  element.set_type(onnx::AttributeProto::INT);
  element.set_i(type.sequence_type().elem_type().tensor_type().elem_type());
  onnx::ValueInfoProto& output = *graph.add_output();
  output.set_name("empty");
  *output.mutable_type() = type;
  ANEMONE_ASSIGN_OR_RETURN(const auto session, CpuSession::FromModel(runtime, std::string(kWhere),
                                                                     std::move(model), {}));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<CpuValue> made, session->Run({}, {CpuOutput{}}));
  return made[0];
}

}  // namespace

absl::StatusOr<CpuValue> FromOnnxValue(const std::shared_ptr<const OrtRuntime>& runtime,
                                       const onnx::TypeProto& type, const OnnxValue& value) {
  if (value.kind == OnnxValue::Kind::kNothing) return CpuValue();
  if (type.has_optional_type()) {
    return FromOnnxValue(runtime, type.optional_type().elem_type(), value);
  }
  if (value.kind == OnnxValue::Kind::kTensor) return CpuValue::FromTensor(runtime, value.tensor);
  if (value.kind == OnnxValue::Kind::kMap) {
    ANEMONE_ASSIGN_OR_RETURN(const CpuValue keys,
                             CpuValue::FromTensor(runtime, value.elements[0].tensor));
    ANEMONE_ASSIGN_OR_RETURN(const CpuValue values,
                             CpuValue::FromTensor(runtime, value.elements[1].tensor));
    return CpuValue::Map(runtime, keys, values);
  }
  if (value.elements.empty()) return EmptySequence(runtime, type);
  std::vector<CpuValue> elements;
  for (const OnnxValue& element : value.elements) {
    ANEMONE_ASSIGN_OR_RETURN(elements.emplace_back(),
                             FromOnnxValue(runtime, type.sequence_type().elem_type(), element));
  }
  return CpuValue::Sequence(runtime, elements);
}

}  // namespace anemone
