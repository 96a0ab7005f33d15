#include "tests/fuzz/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "importer/write/to_onnx.h"
#include "onnx/defs/printer.h"

namespace anemone::fuzz {
namespace {

constexpr int kIrVersion = 10;

onnx::ModelProto EmptyModel(const FuzzGraph& graph) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.add_opset_import()->set_version(graph.opset);
  model.mutable_graph()->set_name("fuzz");
  return model;
}

void AddInput(onnx::GraphProto& graph, const std::string& name, const Tensor& value) {
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name(name);
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(value.type()));
  type.mutable_shape();
  for (int64_t dim : value.dims()) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

void AddInitializer(onnx::GraphProto& graph, const std::string& name, const Tensor& value) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor = ToProto(value);
  tensor.set_name(name);
}

std::string ValuesText(const Tensor& tensor) {
  constexpr int64_t kMost = 24;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < std::min(kMost, tensor.elements()); ++i) {
    switch (tensor.type()) {
      case DataType::kFloat:
        texts.push_back(absl::StrCat(tensor.at<float>(i)));
        break;
      case DataType::kInt64:
        texts.push_back(absl::StrCat(tensor.at<int64_t>(i)));
        break;
      case DataType::kInt32:
        texts.push_back(absl::StrCat(tensor.at<int32_t>(i)));
        break;
      default:
        texts.push_back(absl::StrCat(static_cast<int>(tensor.bytes()[i])));
    }
  }
  return absl::StrCat("{", absl::StrJoin(texts, ", "), tensor.elements() > kMost ? ", ..." : "",
                      "}");
}

}  // namespace

const Leaf* FuzzGraph::FindLeaf(const std::string& name) const {
  const auto leaf =
      std::find_if(leaves.begin(), leaves.end(), [&](const Leaf& l) { return l.name == name; });
  return leaf == leaves.end() ? nullptr : &*leaf;
}

std::vector<std::string> FuzzGraph::Outputs() const {
  std::set<std::string> read;
  for (const auto& node : nodes) read.insert(node.input().begin(), node.input().end());
  std::vector<std::string> outputs;
  for (const auto& node : nodes) {
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      const bool asked =
          std::find(also_outputs.begin(), also_outputs.end(), name) != also_outputs.end();
      if (read.count(name) == 0 || asked) outputs.push_back(name);
    }
  }
  return outputs;
}

Values LeavesOf(const FuzzGraph& graph) {
  Values values;
  for (const Leaf& leaf : graph.leaves) values[leaf.name] = leaf.value;
  return values;
}

onnx::ModelProto ModelOf(const FuzzGraph& graph, const Values& values) {
  onnx::ModelProto model = EmptyModel(graph);
  onnx::GraphProto& proto = *model.mutable_graph();
  for (const Leaf& leaf : graph.leaves) {
    leaf.constant ? AddInitializer(proto, leaf.name, leaf.value)
                  : AddInput(proto, leaf.name, leaf.value);
  }
  for (const auto& node : graph.nodes) *proto.add_node() = node;
  for (const std::string& name : graph.Outputs()) {
    onnx::ValueInfoProto& output = *proto.add_output();
    output.set_name(name);
    output.mutable_type()->mutable_tensor_type()->set_elem_type(
        static_cast<int>(values.at(name).type()));
  }
  return model;
}

std::string TextOf(const FuzzGraph& graph) {
  std::string text = absl::StrCat("opset ", graph.opset, ", target ", graph.target, ", route ",
                                  graph.route, ", numerics ", graph.numerics, "\n");
  for (const Leaf& leaf : graph.leaves) {
    absl::StrAppend(&text, "  ", leaf.constant ? "constant " : "input ", leaf.name, ": ",
                    DataTypeName(leaf.value.type()), " ", DimsToString(leaf.value.dims()), " ",
                    ValuesText(leaf.value), "\n");
  }
  for (const auto& node : graph.nodes) {
    absl::StrAppend(&text, "  ", onnx::ProtoToString(node), "\n");
  }
  return absl::StrCat(text, "  outputs ", absl::StrJoin(graph.Outputs(), ", "), "\n");
}

absl::StatusOr<std::unique_ptr<CpuSession>> OpenNode(const Runtime& runtime, const FuzzGraph& graph,
                                                     const onnx::NodeProto& node,
                                                     const Values& values) {
  OnnxModel model;
  model.proto = EmptyModel(graph);
  onnx::GraphProto& proto = *model.proto.mutable_graph();
  *proto.add_node() = node;
  const std::set<std::string> inputs(node.input().begin(), node.input().end());
  for (const std::string& name : inputs) {
    if (name.empty()) continue;
    const Tensor& value = values.at(name);
    const Leaf* leaf = graph.FindLeaf(name);
    // Axes and similar values stay constants; a value that may be perturbed becomes an input.
    const bool fixed = leaf != nullptr && leaf->constant && value.type() != DataType::kFloat;
    fixed ? AddInitializer(proto, name, value) : AddInput(proto, name, value);
  }
  for (const std::string& name : node.output()) {
    if (!name.empty()) proto.add_output()->set_name(name);
  }
  return CpuSession::FromModel(
      runtime, node.op_type(), std::move(model),
      {.optimization = OrtOptimization::kNone, .memory_pattern = false, .prepack = false});
}

absl::Status RunByName(const Runtime& runtime, const CpuSession& session, Values& values) {
  std::vector<CpuValue> inputs;
  for (const CpuPort& port : session.inputs()) {
    inputs.emplace_back();
    if (port.has_default) continue;
    ANEMONE_ASSIGN_OR_RETURN(inputs.back(), CpuValue::FromTensor(runtime, values.at(port.name)));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<CpuValue> results,
                           session.Run(inputs, std::vector<CpuOutput>(session.outputs().size())));
  for (size_t i = 0; i < results.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(values[session.outputs()[i].name], results[i].ToTensor());
  }
  return absl::OkStatus();
}

}  // namespace anemone::fuzz
