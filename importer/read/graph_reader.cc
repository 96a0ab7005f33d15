#include "importer/read/graph_reader.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/contrib/contrib.h"
#include "importer/read/check.h"
#include "importer/read/constant_inputs.h"
#include "importer/read/sort.h"

namespace anemone {
namespace {

// From this IR version on, an initializer that is also an input may be overridden.
constexpr int64_t kOverridableFromIr = 4;

std::string LabelOf(const onnx::NodeProto& proto, absl::string_view id) {
  const absl::string_view domain = DomainOf(proto.domain());
  const absl::string_view dot = domain.empty() ? "" : ".";
  return proto.name().empty() ? absl::StrCat("node ", id, " (", domain, dot, proto.op_type(), ")")
                              : absl::StrCat("node '", proto.name(), "' (", domain, dot,
                                             proto.op_type(), ", ", id, ")");
}

std::string GraphLabel(const onnx::GraphProto& proto) {
  return absl::StrCat("graph '", proto.name(), "'");
}

// Sets type and shape of `value` from the file's declaration. A negative size means unknown. What
// the file does not declare is not changed.
absl::Status SetDeclaredType(const onnx::TypeProto& type, Value* value) {
  if (type.value_case() == onnx::TypeProto::VALUE_NOT_SET) return absl::OkStatus();
  if (!type.has_tensor_type()) {
    value->other_type = type.SerializeAsString();
    return absl::OkStatus();
  }
  const onnx::TypeProto::Tensor& tensor = type.tensor_type();
  if (tensor.elem_type() == onnx::TensorProto::UNDEFINED) return absl::OkStatus();
  const std::string what = absl::StrCat("value '", value->name, "'");
  ANEMONE_ASSIGN_OR_RETURN(value->type, ReadDataType(tensor.elem_type(), what));
  if (!tensor.has_shape()) return absl::OkStatus();
  Shape shape(tensor.shape().dim_size());
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const onnx::TensorShapeProto::Dimension& dim = tensor.shape().dim(i);
    shape[i].symbol = dim.dim_param();
    if (dim.has_dim_value() && dim.dim_value() >= 0) shape[i].size = dim.dim_value();
  }
  value->shape = std::move(shape);
  return absl::OkStatus();
}

Shape ShapeOf(const Tensor& tensor) {
  Shape shape(tensor.dims().size());
  for (size_t i = 0; i < shape.size(); ++i) shape[i].size = tensor.dims()[i];
  return shape;
}

// The label of the node among the first `count` that writes `name`, or a text for other producers.
std::string MakerOf(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, int count,
                    const std::string& name, absl::string_view path) {
  for (int i = 0; i < count; ++i) {
    for (const std::string& output : nodes[i].output()) {
      if (output == name) return LabelOf(nodes[i], absl::StrCat(path, "/#", i));
    }
  }
  return "an input, an initializer or another output of the same node";
}

// The value of a Constant node; an error if it has none.
absl::StatusOr<Tensor> ConstantOf(const Node& node, absl::string_view label) {
  if (node.attributes.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(label,
                                                   ": want one attribute with the value, got ",
                                                   node.attributes.size(), "; correct the model"));
  }
  const Attribute::Variant& value = node.attributes.front().value;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return *tensor;
  if (const auto* f = std::get_if<float>(&value)) return Tensor::Floats({}, {*f});
  if (const auto* i = std::get_if<int64_t>(&value)) return Tensor::Int64s({}, {*i});
  if (const auto* s = std::get_if<std::string>(&value)) return Tensor::Strings({}, {*s});
  const auto length = [](const auto& list) {
    return std::vector<int64_t>{static_cast<int64_t>(list.size())};
  };
  if (const auto* fs = std::get_if<std::vector<float>>(&value)) {
    return Tensor::Floats(length(*fs), *fs);
  }
  if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) {
    return Tensor::Int64s(length(*is), *is);
  }
  if (const auto* ss = std::get_if<std::vector<std::string>>(&value)) {
    return Tensor::Strings(length(*ss), *ss);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      label, ": attribute '", node.attributes.front().name, "' is not a value; correct the model"));
}

}  // namespace

// Limits the memory that a small malicious file can use with names and functions.
absl::Status GraphReader::Spend(size_t bytes) {
  spent_ += bytes;
  if (static_cast<int64_t>(spent_) <= ValueOf(ModelLimit::kNameBytes)) return absl::OkStatus();
  return OverLimit(ModelLimit::kNameBytes, "the model's names, functions and bodies expand to",
                   "export the model without functions");
}

absl::Status GraphReader::CheckDepth(const Place& place, const Scope& scope) const {
  if (scope.depth < ValueOf(ModelLimit::kCallNesting)) return absl::OkStatus();
  return OverLimit(ModelLimit::kCallNesting,
                   absl::StrCat(place.label, ": bodies and calls are nested"), "flatten the model");
}

// Values of the main graph keep their names; those of bodies and functions get a path prefix.
absl::StatusOr<ValueId> GraphReader::NewValue(absl::string_view name, const Scope& scope) {
  const std::string wanted =
      scope.path.empty() ? std::string(name) : absl::StrCat(scope.path, "/", name);
  ANEMONE_RETURN_IF_ERROR(Spend(wanted.size()));
  return AddValue(*scope.graph, names_.Fresh(wanted));
}

std::optional<ValueId> GraphReader::Resolve(Scope& scope, const std::string& name) {
  if (auto it = scope.names.find(name); it != scope.names.end()) return it->second;
  if (scope.outer == nullptr) return std::nullopt;
  const std::optional<ValueId> outer = Resolve(*scope.outer, name);
  if (!outer.has_value()) return std::nullopt;
  const ValueId own = *outer == kNone ? kNone : Capture(scope, *outer);
  scope.names.emplace(name, own);
  return own;
}

// The value of a body that refers to value `outer` of the enclosing scope.
ValueId GraphReader::Capture(Scope& scope, ValueId outer) {
  const auto [it, is_new] = scope.captured.try_emplace(outer, kNone);
  if (!is_new) return it->second;
  Value value = scope.outer->graph->values[outer];
  value.producer = kNone;
  it->second = static_cast<ValueId>(scope.graph->values.size());
  scope.graph->values.push_back(std::move(value));
  scope.graph->captures.push_back(it->second);
  scope.captures.push_back(outer);
  return it->second;
}

// Makes a value of the graph that contains a function call available in `scope`, which is a body in
// that function.
ValueId GraphReader::CaptureFromCaller(Scope& scope, ValueId id) {
  return scope.outer == nullptr ? id : Capture(scope, CaptureFromCaller(*scope.outer, id));
}

// For a domain that is not imported, the newest opset, as in ONNX Runtime.
int GraphReader::VersionOf(const Scope& scope, const std::string& domain) const {
  if (scope.call != nullptr) {
    if (auto it = scope.call->opsets.find(domain); it != scope.call->opsets.end()) {
      return static_cast<int>(it->second);
    }
  }
  if (auto it = model_.opsets.find(domain); it != model_.opsets.end()) {
    return static_cast<int>(it->second);
  }
  return static_cast<int>(std::max<int64_t>(NewestOpset(domain), 1));
}

absl::Status GraphReader::AddOrigin(const Node& node, const Place& place) {
  ANEMONE_RETURN_IF_ERROR(Spend(node.name.size() + node.op_type.size()));
  model_.origins.push_back({place.id, node.name, node.op_type, node.domain});
  return absl::OkStatus();
}

absl::Status GraphReader::ReadInputs(const onnx::GraphProto& proto, Scope& scope) {
  for (const onnx::ValueInfoProto& input : proto.input()) {
    if (input.name().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          GraphLabel(proto), ": input ", scope.graph->inputs.size(), " has no name; give it one"));
    }
    const auto [it, is_new] = scope.names.try_emplace(input.name(), kNone);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(GraphLabel(proto), ": input '", input.name(),
                                                     "' is listed twice; rename one"));
    }
    ANEMONE_ASSIGN_OR_RETURN(it->second, NewValue(input.name(), scope));
    scope.graph->inputs.push_back(it->second);
    ANEMONE_RETURN_IF_ERROR(SetDeclaredType(input.type(), &scope.graph->values[it->second]));
  }
  return absl::OkStatus();
}

absl::Status GraphReader::PlaceInitializer(const std::string& name, Tensor tensor, Scope& scope,
                                           absl::flat_hash_set<std::string>& seen) {
  if (!seen.insert(name).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("initializer '", name, "' is defined twice; correct the model"));
  }
  const auto [it, is_new] = scope.names.try_emplace(name, kNone);
  if (is_new) {
    ANEMONE_ASSIGN_OR_RETURN(it->second, NewValue(name, scope));
  }
  Value& value = scope.graph->values[it->second];
  if (value.type != DataType::kUndefined && value.type != tensor.type()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "initializer '", name, "' is ", DataTypeName(tensor.type()),
        ", but the input of that name is ", DataTypeName(value.type), "; correct the model"));
  }
  if (!is_new && scope.outer != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "initializer '", name, "' is also an input of its body; such inputs cannot have defaults"));
  }
  const bool may_override = !is_new && model_.ir_version >= kOverridableFromIr;
  if (may_override && (overridable_.contains(name) || overridable_.contains(kAllOverridable))) {
    scope.graph->defaults.emplace(it->second, std::move(tensor));
    value.type = scope.graph->defaults.at(it->second).type();
    return absl::OkStatus();
  }
  if (may_override) scope.graph->constant_inputs.push_back(name);
  value.type = tensor.type();
  value.shape = ShapeOf(tensor);
  value.constant = std::move(tensor);
  return absl::OkStatus();
}

absl::Status GraphReader::ReadInitializers(const onnx::GraphProto& proto, Scope& scope) {
  absl::flat_hash_set<std::string> seen;
  const auto place = [&](const std::string& name, absl::StatusOr<Tensor> tensor) -> absl::Status {
    ANEMONE_RETURN_IF_ERROR(tensor.status());
    if (name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(GraphLabel(proto), ": initializer ",
                                                     seen.size(), " has no name; give it one"));
    }
    return PlaceInitializer(name, *std::move(tensor), scope, seen);
  };
  for (const onnx::TensorProto& tensor : proto.initializer()) {
    ANEMONE_RETURN_IF_ERROR(place(
        tensor.name(), tensors_.Read(tensor, absl::StrCat("initializer '", tensor.name(), "'"))));
  }
  for (const onnx::SparseTensorProto& sparse : proto.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    ANEMONE_RETURN_IF_ERROR(
        place(name, tensors_.ReadSparse(sparse, absl::StrCat("sparse initializer '", name, "'"))));
  }
  // Before IR version 4 every initializer had to be an input too. A constant is not an input here.
  std::vector<ValueId>& inputs = scope.graph->inputs;
  inputs.erase(
      std::remove_if(inputs.begin(), inputs.end(),
                     [&](ValueId id) { return scope.graph->values[id].constant.has_value(); }),
      inputs.end());
  return absl::OkStatus();
}

// Creates the values of all outputs of `nodes` before a node is read: nodes may be in any order.
absl::Status GraphReader::DeclareOutputs(const NodeList& nodes, Scope& scope) {
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].output()) {
      if (name.empty()) continue;
      const auto [it, is_new] = scope.names.try_emplace(name, kNone);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat(
            "value '", name, "' is made by ", LabelOf(nodes[i], absl::StrCat(scope.path, "/#", i)),
            " and also by ", MakerOf(nodes, i, name, scope.path), "; rename one"));
      }
      if (auto bound = scope.bound.find(name); bound != scope.bound.end()) {
        it->second = bound->second;
      } else {
        ANEMONE_ASSIGN_OR_RETURN(it->second, NewValue(name, scope));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status GraphReader::ReadGraphOutputs(const onnx::GraphProto& proto, Scope& scope) {
  absl::flat_hash_set<std::string> seen;
  for (const onnx::ValueInfoProto& output : proto.output()) {
    const std::optional<ValueId> id = Resolve(scope, output.name());
    if (!id.has_value() || *id == kNone) {
      return absl::NotFoundError(absl::StrCat(
          GraphLabel(proto), ": output '", output.name(),
          "' is undefined: no node, input or initializer has that name; ", "correct the model"));
    }
    if (scope.outer == nullptr && !seen.insert(output.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(GraphLabel(proto), ": output '", output.name(),
                                                     "' is listed twice; drop one"));
    }
    scope.graph->outputs.push_back(*id);
  }
  return absl::OkStatus();
}

// Uses the types that value_info and the outputs declare, for values without a type.
absl::Status GraphReader::ReadDeclaredTypes(const onnx::GraphProto& proto, Scope& scope) {
  for (const auto* list : {&proto.output(), &proto.value_info()}) {
    for (const onnx::ValueInfoProto& info : *list) {
      const auto it = scope.names.find(info.name());
      if (it == scope.names.end() || it->second == kNone) continue;
      Value& value = scope.graph->values[it->second];
      if (value.type != DataType::kUndefined || !value.other_type.empty()) continue;
      ANEMONE_RETURN_IF_ERROR(SetDeclaredType(info.type(), &value));
    }
  }
  return absl::OkStatus();
}

absl::Status GraphReader::ReadGraph(const onnx::GraphProto& proto, Scope& scope) {
  scope.graph->name = proto.name();
  ANEMONE_RETURN_IF_ERROR(ReadInputs(proto, scope));
  ANEMONE_RETURN_IF_ERROR(ReadInitializers(proto, scope));
  ANEMONE_RETURN_IF_ERROR(DeclareOutputs(proto.node(), scope));
  ANEMONE_RETURN_IF_ERROR(ReadDeclaredTypes(proto, scope));
  ANEMONE_RETURN_IF_ERROR(ReadNodes(proto.node(), scope));
  ANEMONE_RETURN_IF_ERROR(ReadGraphOutputs(proto, scope));
  return SortNodes(model_, *scope.graph);
}

absl::Status GraphReader::ReadMain(const onnx::GraphProto& proto,
                                   const std::vector<std::string>& overridable) {
  overridable_ = {overridable.begin(), overridable.end()};
  Scope scope;
  scope.graph = &model_.graph;
  scope.nodes = &model_.graph.nodes;
  return ReadGraph(proto, scope);
}

absl::Status GraphReader::ReadNodes(const NodeList& nodes, Scope& scope) {
  for (int i = 0; i < nodes.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(ReadNode(nodes[i], i, scope));
  }
  return absl::OkStatus();
}

absl::Status GraphReader::ReadNode(const onnx::NodeProto& proto, int index, Scope& scope) {
  Place place;
  place.id = absl::StrCat(scope.path, "/#", index);
  ANEMONE_RETURN_IF_ERROR(Spend(place.id.size()));
  place.label = LabelOf(proto, place.id);
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRead, [&] { return place.label; }));
  place.step = absl::StrCat(proto.op_type(), "_", index);
  if (proto.op_type().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(place.label, ": has no op_type; correct the model"));
  }
  if (const onnx::FunctionProto* function = functions_.Find(proto); function != nullptr) {
    return InlineCall(proto, *function, place, scope);
  }
  Node node;
  node.name = proto.name();
  node.op_type = proto.op_type();
  node.domain = std::string(DomainOf(proto.domain()));
  node.version = VersionOf(scope, node.domain);
  if (scope.call != nullptr && !scope.call->origins.empty()) {
    node.origins = scope.call->origins;
    ANEMONE_RETURN_IF_ERROR(ReadParts(proto, place, scope, &node));
  } else {  // its origins are itself and all nodes in its bodies
    const auto first = static_cast<OriginId>(model_.origins.size());
    ANEMONE_RETURN_IF_ERROR(AddOrigin(node, place));
    ANEMONE_RETURN_IF_ERROR(ReadParts(proto, place, scope, &node));
    node.origins.resize(model_.origins.size() - first);
    std::iota(node.origins.begin(), node.origins.end(), first);
  }
  return AddNode(std::move(node), place, scope);
}

// Reads inputs, outputs and attributes.
absl::Status GraphReader::ReadParts(const onnx::NodeProto& proto, const Place& place, Scope& scope,
                                    Node* node) {
  for (int i = 0; i < proto.input_size(); ++i) {
    const std::string& name = proto.input(i);
    const std::optional<ValueId> id = name.empty() ? kNone : Resolve(scope, name);
    if (!id.has_value()) {
      return absl::NotFoundError(absl::StrCat(
          place.label, ": input ", i, " '", name, "' is undefined: no node, input or initializer ",
          "has that name; an initializer may be missing, export the model again"));
    }
    node->inputs.push_back(*id);
  }
  while (!node->inputs.empty() && node->inputs.back() == kNone) node->inputs.pop_back();
  for (const std::string& name : proto.output()) {
    node->outputs.push_back(name.empty() ? kNone : scope.names.at(name));
  }
  return ReadAttributes(proto, place, scope, node);
}

// Checks a node and adds it; a Constant is added as a value.
absl::Status GraphReader::AddNode(Node node, const Place& place, Scope& scope) {
  ANEMONE_ASSIGN_OR_RETURN(const bool is_known, CheckNode(node, place.label));
  if (!is_known && !IsContrib(node) && unknown_.emplace(node.domain, node.op_type).second) {
    model_.warnings.push_back(
        {"unknown-operator", place.label,
         absl::StrCat(
             "operator ", node.op_type, " of domain '", node.domain,
             "' is not a standard ONNX operator; it stays on the CPU, and shapes after it ",
             "may be unknown"),
         "run the model with an ONNX Runtime that has the operator; nodes after it can run on the "
         "engine if the model declares the types and shapes of its outputs (value_info)"});
  }
  if (!node.domain.empty() || node.op_type != "Constant") {
    if (++nodes_ > ValueOf(ModelLimit::kNodes)) {
      return OverLimit(ModelLimit::kNodes, absl::StrCat(place.label, ": the model has"));
    }
    scope.nodes->push_back(std::move(node));
    return absl::OkStatus();
  }
  ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, ConstantOf(node, place.label));
  if (node.outputs.front() == kNone) return absl::OkStatus();
  Value& value = scope.graph->values[node.outputs.front()];
  value.type = tensor.type();
  value.shape = ShapeOf(tensor);
  value.constant = std::move(tensor);
  return absl::OkStatus();
}

}  // namespace anemone
