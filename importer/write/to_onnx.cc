#include "importer/write/to_onnx.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/write/compressed_nodes.h"

namespace anemone {
namespace {

// A fill of at least this many bytes is written as a ConstantOfShape node.
constexpr int64_t kFillNodeFrom = 1024;

// The types that ONNX Runtime's ConstantOfShape supports; a fill of another type is expanded.
bool HasFillNode(DataType type) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kFloat16:
    case DataType::kDouble:
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUInt8:
    case DataType::kUInt16:
    case DataType::kUInt32:
    case DataType::kUInt64:
    case DataType::kBool:
      return true;
    default:
      return false;
  }
}

// The element repeated; sub-byte types are packed.
std::string ExpandedBytes(const Tensor& fill) {
  const auto size = static_cast<size_t>(ByteSize(fill.type(), fill.dims()));
  std::string element(reinterpret_cast<const char*>(fill.bytes().data()), fill.bytes().size());
  if (const int bits = BitsOf(fill.type()); bits < 8) {
    const int value = element[0] & ((1 << bits) - 1);
    int packed = 0;
    for (int shift = 0; shift < 8; shift += bits) packed |= value << shift;
    element[0] = static_cast<char>(packed);
  }
  std::string bytes;
  bytes.reserve(size);
  while (bytes.size() < size) bytes += element;
  return bytes;
}

void SetTypeAndDims(const Tensor& tensor, onnx::TensorProto* proto) {
  proto->set_data_type(static_cast<int32_t>(tensor.type()));
  for (int64_t dim : tensor.dims()) proto->add_dims(dim);
}

// Writes graphs. Constants of bodies may be moved to `root`; if it is null, they stay.
class Writer {
 public:
  Writer(int64_t external_from, onnx::GraphProto* root, std::vector<ExternalConstant>* external)
      : external_from_(external_from), root_(root), external_(external) {}

  absl::Status WriteMain(const Graph& graph, absl::Span<const NodeId> nodes,
                         absl::Span<const ValueId> inputs, absl::Span<const ValueId> outputs);
  absl::Status WriteLoneNode(const Graph& graph, const Node& node, onnx::NodeProto* out);
  absl::Status WriteAttribute(const Attribute& attribute, onnx::AttributeProto* out);

 private:
  struct Scope {
    const Graph* graph = nullptr;
    onnx::GraphProto* out = nullptr;                     // null: constants are not written
    absl::flat_hash_set<ValueId> defined;                // no initializer needed
    absl::flat_hash_map<ValueId, std::string> captured;  // names of the outer values
  };
  // The names of the values that the bodies of one node capture, in the order of Node::captures.
  struct CapturedNames {
    std::vector<std::string> names;
    size_t used = 0;
  };

  absl::StatusOr<std::string> NameOf(const Scope& scope, ValueId id) const;
  absl::Status Require(Scope& scope, ValueId id);
  void WriteConstant(Scope& scope, const Value& value);
  void WriteInitializer(Scope& scope, const std::string& name, const Tensor& tensor);
  void WriteFillNode(const Value& value, onnx::GraphProto* out);
  absl::Status WriteNode(Scope& scope, const Node& node, onnx::NodeProto* out);
  absl::Status WriteAttributeValue(const Attribute& attribute, CapturedNames& captured,
                                   onnx::AttributeProto* out);
  // `keeps_shapes`: the outputs have the shapes of the values.
  absl::Status WriteBody(const Graph& body, bool keeps_shapes, CapturedNames& captured,
                         onnx::GraphProto* out);
  absl::Status WriteBodyOutputs(Scope& scope, bool keeps_shapes);
  absl::Status WriteNodes(Scope& scope, absl::Span<const NodeId> nodes);

  int64_t external_from_;
  onnx::GraphProto* root_;
  std::vector<ExternalConstant>* external_;
  int identities_ = 0;  // written by WriteBodyOutputs
  absl::flat_hash_set<std::string> node_names_;
};

absl::StatusOr<std::string> Writer::NameOf(const Scope& scope, ValueId id) const {
  if (id == kNone) return std::string();
  if (auto it = scope.captured.find(id); it != scope.captured.end()) return it->second;
  const Value& value = scope.graph->values[id];
  if (value.name.empty()) {
    return absl::InternalError(
        absl::StrCat("graph '", scope.graph->name, "': value ", id, " has no name"));
  }
  return value.name;
}

// Writes value `id` if it is a constant that is not written yet. A node of `scope` reads it.
absl::Status Writer::Require(Scope& scope, ValueId id) {
  if (id == kNone || scope.out == nullptr) return absl::OkStatus();
  if (!scope.defined.insert(id).second) return absl::OkStatus();
  const Value& value = scope.graph->values[id];
  if (!value.constant.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("value '", value.name, "' is read by a node to be written, but is not an ",
                     "input, a constant or an output of an earlier node"));
  }
  WriteConstant(scope, value);
  return absl::OkStatus();
}

void Writer::WriteConstant(Scope& scope, const Value& value) {
  const Tensor& tensor = *value.constant;
  onnx::GraphProto* main = root_ != nullptr ? root_ : scope.out;
  const int64_t size = ByteSize(tensor.type(), tensor.dims());
  if (tensor.is_fill() && size >= kFillNodeFrom && HasFillNode(tensor.type())) {
    return WriteFillNode(value, main);
  }
  if (tensor.compressed() == nullptr) return WriteInitializer(scope, value.name, tensor);
  Scope root{.graph = scope.graph, .out = main};
  WriteCompressed(value.name, tensor, main, [&](const std::string& name, const Tensor& part) {
    WriteInitializer(root, name, part);
  });
}

void Writer::WriteInitializer(Scope& scope, const std::string& name, const Tensor& tensor) {
  const int64_t size = ByteSize(tensor.type(), tensor.dims());
  const bool external = external_ != nullptr && size > 0 && size >= external_from_ &&
                        tensor.type() != DataType::kString && !tensor.is_fill();
  if (!external) {
    onnx::TensorProto* proto = scope.out->add_initializer();
    *proto = ToProto(tensor);
    proto->set_name(name);
    return;
  }
  onnx::TensorProto* proto = root_->add_initializer();
  SetTypeAndDims(tensor, proto);
  proto->set_name(name);
  proto->set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto* location = proto->add_external_data();
  location->set_key("location");
  location->set_value(std::string(kExternalMarker));
  external_->push_back({name, tensor});
}

void Writer::WriteFillNode(const Value& value, onnx::GraphProto* out) {
  const Tensor& fill = *value.constant;
  onnx::TensorProto* shape = out->add_initializer();
  const std::vector<int64_t>& dims = fill.dims();
  *shape = ToProto(Tensor::Int64s({static_cast<int64_t>(dims.size())}, dims));
  shape->set_name(absl::StrCat(value.name, "/shape_of_fill"));
  onnx::NodeProto* node = out->add_node();
  node->set_op_type("ConstantOfShape");
  node->add_input(shape->name());
  node->add_output(value.name);
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name("value");
  attribute->set_type(onnx::AttributeProto::TENSOR);
  *attribute->mutable_t() = ToProto(Tensor::Fill(fill.type(), {1}, fill.bytes()));
}

absl::Status Writer::WriteNode(Scope& scope, const Node& node, onnx::NodeProto* out) {
  // Several nodes may have the name of the file's node that they replace, but ONNX Runtime requires
  // unique names.
  if (node_names_.insert(node.name).second) out->set_name(node.name);
  out->set_op_type(node.op_type);
  if (!node.domain.empty()) out->set_domain(node.domain);
  for (ValueId id : node.inputs) {
    ANEMONE_RETURN_IF_ERROR(Require(scope, id));
    ANEMONE_ASSIGN_OR_RETURN(*out->add_input(), NameOf(scope, id));
  }
  for (ValueId id : node.outputs) {
    ANEMONE_ASSIGN_OR_RETURN(*out->add_output(), NameOf(scope, id));
  }
  CapturedNames captured;
  for (ValueId id : node.captures) {
    ANEMONE_RETURN_IF_ERROR(Require(scope, id));
    ANEMONE_ASSIGN_OR_RETURN(captured.names.emplace_back(), NameOf(scope, id));
  }
  for (const Attribute& attribute : node.attributes) {
    ANEMONE_RETURN_IF_ERROR(WriteAttributeValue(attribute, captured, out->add_attribute()));
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteAttribute(const Attribute& attribute, onnx::AttributeProto* out) {
  CapturedNames captured;  // empty: bodies keep their names
  return WriteAttributeValue(attribute, captured, out);
}

absl::Status Writer::WriteLoneNode(const Graph& graph, const Node& node, onnx::NodeProto* out) {
  Scope scope;
  scope.graph = &graph;
  return WriteNode(scope, node, out);
}

absl::Status Writer::WriteAttributeValue(const Attribute& attribute, CapturedNames& captured,
                                         onnx::AttributeProto* out) {
  using Proto = onnx::AttributeProto;
  // After no iteration of a Loop or Scan, the scan outputs have the shape of the body's outputs.
  // Branches of an If may be invalid for the bound shapes.
  const bool keeps_shapes = attribute.name == "body";
  const auto write = [&](const auto& value) -> absl::Status {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, float>) {
      out->set_type(Proto::FLOAT);
      out->set_f(value);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      out->set_type(Proto::INT);
      out->set_i(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out->set_type(Proto::STRING);
      out->set_s(value);
    } else if constexpr (std::is_same_v<T, Tensor>) {
      out->set_type(Proto::TENSOR);
      *out->mutable_t() = ToProto(value);
    } else if constexpr (std::is_same_v<T, Attribute::GraphPtr>) {
      out->set_type(Proto::GRAPH);
      return WriteBody(*value, keeps_shapes, captured, out->mutable_g());
    } else if constexpr (std::is_same_v<T, std::vector<float>>) {
      out->set_type(Proto::FLOATS);
      out->mutable_floats()->Add(value.begin(), value.end());
    } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      out->set_type(Proto::INTS);
      out->mutable_ints()->Add(value.begin(), value.end());
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      out->set_type(Proto::STRINGS);
      out->mutable_strings()->Add(value.begin(), value.end());
    } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
      out->set_type(Proto::TENSORS);
      for (const Tensor& tensor : value) *out->add_tensors() = ToProto(tensor);
    } else if constexpr (std::is_same_v<T, std::vector<Attribute::GraphPtr>>) {
      out->set_type(Proto::GRAPHS);
      for (const Attribute::GraphPtr& body : value) {
        ANEMONE_RETURN_IF_ERROR(WriteBody(*body, keeps_shapes, captured, out->add_graphs()));
      }
    } else {
      static_assert(std::is_same_v<T, Attribute::Other>);
      if (!out->ParseFromString(value.bytes)) {
        return absl::InternalError(
            absl::StrCat("attribute '", attribute.name, "': its stored bytes cannot be parsed"));
      }
    }
    return absl::OkStatus();
  };
  ANEMONE_RETURN_IF_ERROR(std::visit(write, attribute.value));
  out->set_name(attribute.name);
  return absl::OkStatus();
}

absl::Status Writer::WriteBody(const Graph& body, bool keeps_shapes, CapturedNames& captured,
                               onnx::GraphProto* out) {
  Scope scope;
  scope.graph = &body;
  scope.out = out;
  for (ValueId id : body.captures) {
    scope.defined.insert(id);
    if (captured.used < captured.names.size()) {
      scope.captured[id] = captured.names[captured.used++];
    }
  }
  out->set_name(body.name.empty() ? "body" : body.name);
  for (ValueId id : body.inputs) {
    scope.defined.insert(id);
    onnx::ValueInfoProto* input = out->add_input();
    ANEMONE_ASSIGN_OR_RETURN(*input->mutable_name(), NameOf(scope, id));
    *input->mutable_type() = TypeOf(body.values[id]);
  }
  std::vector<NodeId> all(body.nodes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NodeId>(i);
  ANEMONE_RETURN_IF_ERROR(WriteNodes(scope, all));
  return WriteBodyOutputs(scope, keeps_shapes);
}

// ONNX Runtime refuses a body that directly returns an outer value, including a constant that was
// moved to the main graph. Such an output, and one that is listed twice, gets an Identity.
absl::Status Writer::WriteBodyOutputs(Scope& scope, bool keeps_shapes) {
  const Graph& body = *scope.graph;
  const absl::flat_hash_set<ValueId> inputs(body.inputs.begin(), body.inputs.end());
  absl::flat_hash_set<ValueId> listed;
  for (ValueId id : body.outputs) {
    ANEMONE_RETURN_IF_ERROR(Require(scope, id));
    ANEMONE_ASSIGN_OR_RETURN(std::string name, NameOf(scope, id));
    const bool own = body.values[id].producer != kNone || inputs.contains(id);
    if (!own || !listed.insert(id).second) {
      onnx::NodeProto* identity = scope.out->add_node();
      identity->set_op_type("Identity");
      identity->add_input(name);
      name = absl::StrCat(name, "/returned_", identities_++);
      identity->add_output(name);
    }
    onnx::ValueInfoProto* output = scope.out->add_output();
    output->set_name(name);
    *output->mutable_type() = TypeOf(body.values[id]);
    if (!keeps_shapes && output->type().has_tensor_type()) {
      output->mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteNodes(Scope& scope, absl::Span<const NodeId> nodes) {
  for (NodeId id : nodes) {
    const Node& node = scope.graph->nodes[id];
    // Written to a separate proto first: fills that its bodies move to the main graph must precede
    // the node.
    onnx::NodeProto proto;
    ANEMONE_RETURN_IF_ERROR(WriteNode(scope, node, &proto));
    *scope.out->add_node() = std::move(proto);
    scope.defined.insert(node.outputs.begin(), node.outputs.end());
  }
  return absl::OkStatus();
}

absl::Status Writer::WriteMain(const Graph& graph, absl::Span<const NodeId> nodes,
                               absl::Span<const ValueId> inputs,
                               absl::Span<const ValueId> outputs) {
  Scope scope;
  scope.graph = &graph;
  scope.out = root_;
  root_->set_name(graph.name.empty() ? "graph" : graph.name);
  // A branch that is not taken may be invalid for the shapes that the user bound: ONNX Runtime's
  // inference refuses Silero VAD's 8 kHz branch if the input is known to be that of 16 kHz. So if
  // there are bodies, input dimensions are written as unknown.
  bool has_bodies = std::any_of(nodes.begin(), nodes.end(),
                                [&](NodeId id) { return !BodiesOf(graph.nodes[id]).empty(); });
  for (ValueId id : inputs) {
    scope.defined.insert(id);
    onnx::ValueInfoProto* input = root_->add_input();
    ANEMONE_ASSIGN_OR_RETURN(*input->mutable_name(), NameOf(scope, id));
    *input->mutable_type() = TypeOf(graph.values[id]);
    if (has_bodies && input->type().has_tensor_type()) {
      auto* shape = input->mutable_type()->mutable_tensor_type()->mutable_shape();
      for (auto& dim : *shape->mutable_dim()) dim.Clear();
    }
    if (input->type().value_case() == onnx::TypeProto::VALUE_NOT_SET) {
      return absl::InvalidArgumentError(absl::StrCat(
          "value '", input->name(), "': its type is not known, so it cannot be a graph input"));
    }
  }
  ANEMONE_RETURN_IF_ERROR(WriteNodes(scope, nodes));
  for (ValueId id : outputs) {
    ANEMONE_RETURN_IF_ERROR(Require(scope, id));
    onnx::ValueInfoProto* output = root_->add_output();
    ANEMONE_ASSIGN_OR_RETURN(*output->mutable_name(), NameOf(scope, id));
    // No shape: ONNX Runtime infers it, and a wrong one in the file would only raise warnings.
    *output->mutable_type() = TypeOf(graph.values[id]);
    if (output->type().has_tensor_type())
      output->mutable_type()->mutable_tensor_type()->clear_shape();
  }
  return absl::OkStatus();
}

}  // namespace

const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, absl::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

onnx::TensorProto ToProto(const Tensor& tensor) {
  onnx::TensorProto proto;
  SetTypeAndDims(tensor, &proto);
  if (tensor.type() == DataType::kString) {
    for (const std::string& s : tensor.strings()) proto.add_string_data(s);
  } else if (tensor.is_fill()) {
    proto.set_raw_data(ExpandedBytes(tensor));
  } else {
    proto.set_raw_data(tensor.bytes().data(), tensor.bytes().size());
  }
  return proto;
}

onnx::TypeProto TypeOf(const Value& value) {
  onnx::TypeProto type;
  SetType(value, type);
  return type;
}

void SetType(const Value& value, onnx::TypeProto& type) {
  if (!value.other_type.empty()) {
    type.ParseFromString(value.other_type);
    return;
  }
  if (value.type == DataType::kUndefined) return;
  type.mutable_tensor_type()->set_elem_type(static_cast<int32_t>(value.type));
  if (!value.shape.has_value()) return;
  onnx::TensorShapeProto* shape = type.mutable_tensor_type()->mutable_shape();
  for (const Dim& dim : *value.shape) {
    onnx::TensorShapeProto::Dimension* out = shape->add_dim();
    if (dim.known()) {
      out->set_dim_value(dim.size);
    } else if (!dim.symbol.empty()) {
      out->set_dim_param(dim.symbol);
    }
  }
}

absl::StatusOr<onnx::AttributeProto> ToProto(const Attribute& attribute) {
  onnx::AttributeProto proto;
  ANEMONE_RETURN_IF_ERROR(
      Writer(kNeverExternal, nullptr, nullptr).WriteAttribute(attribute, &proto));
  return proto;
}

absl::StatusOr<onnx::NodeProto> ToProto(const Graph& graph, const Node& node) {
  onnx::NodeProto proto;
  ANEMONE_RETURN_IF_ERROR(
      Writer(kNeverExternal, nullptr, nullptr).WriteLoneNode(graph, node, &proto));
  return proto;
}

absl::StatusOr<OnnxModel> ToOnnx(const Graph& graph, absl::Span<const NodeId> nodes,
                                 absl::Span<const ValueId> inputs,
                                 absl::Span<const ValueId> outputs, const ToOnnxOptions& options) {
  OnnxModel model;
  model.proto.set_ir_version(options.ir_version);
  model.proto.set_producer_name("anemone");
  std::map<std::string, int64_t> opsets = options.opsets;
  opsets.emplace("", kWorkingOpset);
  for (const auto& [domain, version] : opsets) {
    onnx::OperatorSetIdProto* opset = model.proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  Writer writer(options.external_from, model.proto.mutable_graph(), &model.external);
  ANEMONE_RETURN_IF_ERROR(writer.WriteMain(graph, nodes, inputs, outputs));
  if (model.proto.ByteSizeLong() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph '", graph.name, "': its constants do not fit into protobuf's 2 GiB; ",
                     "write large constants as external data"));
  }
  return model;
}

absl::StatusOr<OnnxModel> ToOnnx(const Graph& graph, const ToOnnxOptions& options) {
  std::vector<NodeId> all(graph.nodes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NodeId>(i);
  return ToOnnx(graph, all, graph.inputs, graph.outputs, options);
}

}  // namespace anemone
