// The part of GraphReader that replaces function calls by the functions' bodies.
#include "absl/strings/str_cat.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/read/check.h"
#include "importer/read/graph_reader.h"

namespace anemone {

absl::Status GraphReader::InlineCall(const onnx::NodeProto& proto,
                                     const onnx::FunctionProto& function, const Place& place,
                                     Scope& scope) {
  ANEMONE_RETURN_IF_ERROR(CheckDepth(place, scope));
  // The cost of a call includes the calls inside the function.
  if (scope.call == nullptr) ANEMONE_RETURN_IF_ERROR(functions_.Charge(function));
  ANEMONE_RETURN_IF_ERROR(Spend(function.ByteSizeLong()));
  Node node;
  node.name = proto.name();
  node.op_type = proto.op_type();
  node.domain = std::string(DomainOf(proto.domain()));
  ANEMONE_RETURN_IF_ERROR(ReadParts(proto, place, scope, &node));
  ANEMONE_ASSIGN_OR_RETURN(const Call call, MakeCall(node, function, place));
  Scope inner;
  inner.graph = scope.graph;
  inner.nodes = scope.nodes;
  inner.call = &call;
  inner.path = absl::StrCat(scope.path, "/", place.step);
  inner.depth = scope.depth + 1;
  return ReadFunction(function, node, place, inner);
}

absl::StatusOr<std::vector<Node>> GraphReader::Expand(Graph& graph, const Node& call,
                                                      const onnx::FunctionProto& function) {
  Place place;
  place.id = call.origins.empty() ? "" : model_.origins[call.origins.front()].id;
  place.label = NodeLabel(model_, call);
  ANEMONE_ASSIGN_OR_RETURN(Call made, MakeCall(call, function, place));
  made.origins = call.origins;
  std::vector<Node> nodes;
  Scope inner;
  inner.graph = &graph;
  inner.nodes = &nodes;
  inner.call = &made;
  inner.path = absl::StrCat(place.id, "/", call.op_type);
  // A body inside the function refers to captures of the call by name.
  for (ValueId id : call.captures) inner.names.emplace(graph.values[id].name, id);
  ANEMONE_RETURN_IF_ERROR(ReadFunction(function, call, place, inner));
  return nodes;
}

// The attributes of `node`, followed by the defaults of attributes that it does not set.
absl::StatusOr<GraphReader::Call> GraphReader::MakeCall(const Node& node,
                                                        const onnx::FunctionProto& function,
                                                        const Place& place) {
  Call call;
  ANEMONE_ASSIGN_OR_RETURN(call.opsets, ReadOpsets(function.opset_import()));
  call.attributes = node.attributes;
  size_t next = 0;
  for (const Attribute& attribute : node.attributes) {
    call.attribute_at.emplace(attribute.name, call.captures.size());
    size_t count = 0;
    if (const auto* body = std::get_if<Attribute::GraphPtr>(&attribute.value)) {
      count = (*body)->captures.size();
    } else if (const auto* list = std::get_if<std::vector<Attribute::GraphPtr>>(&attribute.value)) {
      for (const Attribute::GraphPtr& body : *list) count += body->captures.size();
    }
    const auto begin = node.captures.begin() + next;
    call.captures.emplace_back(begin, begin + count);
    next += count;
  }
  Graph nothing;  // a default value that is a body has no outer values
  Scope scope;
  scope.graph = &nothing;
  scope.nodes = &nothing.nodes;
  scope.depth = static_cast<int>(ValueOf(ModelLimit::kCallNesting)) - 1;
  for (const onnx::AttributeProto& proto : function.attribute_proto()) {
    if (!call.attribute_at.emplace(proto.name(), call.attributes.size()).second) continue;
    std::vector<ValueId>& captures = call.captures.emplace_back();
    ANEMONE_ASSIGN_OR_RETURN(call.attributes.emplace_back(),
                             ReadAttribute(proto, place, scope, &captures));
  }
  return call;
}

absl::Status GraphReader::ReadFunction(const onnx::FunctionProto& function, const Node& node,
                                       const Place& place, Scope& inner) {
  if (node.inputs.size() > function.input_size() || node.outputs.size() > function.output_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(place.label, ": function '", function.name(), "' has ", function.input_size(),
                     " inputs and ", function.output_size(), " outputs, but is called with ",
                     node.inputs.size(), " and ", node.outputs.size(), "; correct the call"));
  }
  for (int i = 0; i < function.input_size(); ++i) {
    const ValueId actual = i < node.inputs.size() ? node.inputs[i] : kNone;
    inner.names.insert_or_assign(function.input(i), actual);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNone) inner.bound.emplace(function.output(i), node.outputs[i]);
  }
  ANEMONE_RETURN_IF_ERROR(DeclareOutputs(function.node(), inner));
  ANEMONE_RETURN_IF_ERROR(ReadNodes(function.node(), inner));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    const std::optional<ValueId> made = Resolve(inner, function.output(i));
    if (!made.has_value() || *made == kNone) {
      return absl::NotFoundError(absl::StrCat(
          place.label, ": output '", function.output(i), "' of function '", function.name(),
          "' is undefined: none of its nodes writes it; ", "correct the model"));
    }
    if (*made != node.outputs[i]) {
      ANEMONE_RETURN_IF_ERROR(PassThrough(*made, node.outputs[i], node, place, inner));
    }
  }
  return absl::OkStatus();
}

// Adds an Identity for an output that a function returns directly from an input, or returns twice.
// It has the origin of the call.
absl::Status GraphReader::PassThrough(ValueId from, ValueId to, const Node& node,
                                      const Place& place, Scope& inner) {
  Node identity;
  identity.op_type = "Identity";
  identity.version = VersionOf(inner, "");
  identity.inputs = {from};
  identity.outputs = {to};
  identity.origins = inner.call->origins;
  if (identity.origins.empty()) {
    identity.origins.push_back(static_cast<OriginId>(model_.origins.size()));
    ANEMONE_RETURN_IF_ERROR(AddOrigin(node, place));
  }
  return AddNode(std::move(identity), place, inner);
}

}  // namespace anemone
