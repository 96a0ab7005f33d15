// The part of GraphReader that reads attributes and bodies.
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/read/graph_reader.h"

namespace anemone {
namespace {

using onnx::AttributeProto;

// `type`, or the type of the field that is set: very old files have no `type`.
AttributeProto::AttributeType TypeOf(const AttributeProto& proto) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (proto.has_f()) return AttributeProto::FLOAT;
  if (proto.has_i()) return AttributeProto::INT;
  if (proto.has_s()) return AttributeProto::STRING;
  if (proto.has_t()) return AttributeProto::TENSOR;
  if (proto.has_g()) return AttributeProto::GRAPH;
  if (proto.floats_size() > 0) return AttributeProto::FLOATS;
  if (proto.ints_size() > 0) return AttributeProto::INTS;
  if (proto.strings_size() > 0) return AttributeProto::STRINGS;
  if (proto.tensors_size() > 0) return AttributeProto::TENSORS;
  if (proto.graphs_size() > 0) return AttributeProto::GRAPHS;
  return AttributeProto::UNDEFINED;
}

// The bytes of a copy of the attribute; tensors and bodies are shared.
size_t CopiedBytes(const Attribute& attribute) {
  const auto bytes = [](const auto& value) -> size_t {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>) {
      return value.size();
    } else if constexpr (std::is_same_v<T, Attribute::Other>) {
      return value.bytes.size();
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      size_t sum = 0;
      for (const std::string& s : value) sum += sizeof(std::string) + s.size();
      return sum;
    } else if constexpr (requires { value.begin(); }) {
      return value.size() * sizeof(*value.begin());
    } else {
      return 0;
    }
  };
  return std::visit(bytes, attribute.value);
}

}  // namespace

absl::Status GraphReader::ReadAttributes(const onnx::NodeProto& proto, const Place& place,
                                         Scope& scope, Node* node) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const AttributeProto& attribute : proto.attribute()) {
    if (!seen.insert(attribute.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(place.label, ": attribute '", attribute.name(), "' is set twice; drop one"));
    }
    if (!attribute.ref_attr_name().empty()) {
      ANEMONE_RETURN_IF_ERROR(ReadReference(attribute, place, scope, node));
      continue;
    }
    ANEMONE_ASSIGN_OR_RETURN(Attribute read,
                             ReadAttribute(attribute, place, scope, &node->captures));
    node->attributes.push_back(std::move(read));
  }
  return absl::OkStatus();
}

// Reads an attribute that refers to an attribute of the enclosing function call. If the call does
// not set that and it has no default, this attribute is omitted.
absl::Status GraphReader::ReadReference(const AttributeProto& proto, const Place& place,
                                        Scope& scope, Node* node) {
  if (scope.call == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        place.label, ": attribute '", proto.name(), "' refers to attribute '",
        proto.ref_attr_name(), "' of a function, but is not inside one; correct the model"));
  }
  const auto found = scope.call->attribute_at.find(proto.ref_attr_name());
  if (found == scope.call->attribute_at.end()) return absl::OkStatus();
  const Attribute& from = scope.call->attributes[found->second];
  ANEMONE_RETURN_IF_ERROR(Spend(CopiedBytes(from)));
  node->attributes.push_back({proto.name(), from.value});
  for (ValueId id : scope.call->captures[found->second]) {
    node->captures.push_back(CaptureFromCaller(scope, id));
  }
  return absl::OkStatus();
}

absl::StatusOr<Attribute> GraphReader::ReadAttribute(const AttributeProto& proto,
                                                     const Place& place, Scope& scope,
                                                     std::vector<ValueId>* captures) {
  const auto label = [&] { return absl::StrCat(place.label, ": attribute '", proto.name(), "'"); };
  Attribute out{proto.name(), {}};
  switch (TypeOf(proto)) {
    case AttributeProto::FLOAT:
      out.value = proto.f();
      return out;
    case AttributeProto::INT:
      out.value = int64_t{proto.i()};
      return out;
    case AttributeProto::STRING:
      out.value = proto.s();
      return out;
    case AttributeProto::FLOATS:
      out.value = std::vector<float>(proto.floats().begin(), proto.floats().end());
      return out;
    case AttributeProto::INTS:
      out.value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
      return out;
    case AttributeProto::STRINGS:
      out.value = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
      return out;
    case AttributeProto::TENSOR: {
      ANEMONE_ASSIGN_OR_RETURN(out.value, tensors_.Read(proto.t(), label()));
      return out;
    }
    case AttributeProto::TENSORS: {
      std::vector<Tensor> tensors;
      for (const onnx::TensorProto& tensor : proto.tensors()) {
        ANEMONE_ASSIGN_OR_RETURN(tensors.emplace_back(), tensors_.Read(tensor, label()));
      }
      out.value = std::move(tensors);
      return out;
    }
    case AttributeProto::GRAPH: {
      ANEMONE_ASSIGN_OR_RETURN(out.value,
                               ReadBody(proto.g(), proto.name(), place, scope, captures));
      return out;
    }
    case AttributeProto::GRAPHS: {
      std::vector<Attribute::GraphPtr> bodies;
      for (const onnx::GraphProto& body : proto.graphs()) {
        const std::string name = absl::StrCat(proto.name(), ".", bodies.size());
        ANEMONE_ASSIGN_OR_RETURN(bodies.emplace_back(),
                                 ReadBody(body, name, place, scope, captures));
      }
      out.value = std::move(bodies);
      return out;
    }
    case AttributeProto::SPARSE_TENSOR: {  // only Constant has one; it becomes a dense `value`
      out.name = "value";
      ANEMONE_ASSIGN_OR_RETURN(out.value, tensors_.ReadSparse(proto.sparse_tensor(), label()));
      return out;
    }
    case AttributeProto::TYPE_PROTO:
    case AttributeProto::TYPE_PROTOS:
      out.value = Attribute::Other{proto.SerializeAsString()};
      return out;
    case AttributeProto::SPARSE_TENSORS:
      return absl::UnimplementedError(
          absl::StrCat(label(), ": sparse tensors are not supported; store them dense"));
    default:
      return absl::InvalidArgumentError(absl::StrCat(label(), ": has no type; correct the model"));
  }
}

absl::StatusOr<Attribute::GraphPtr> GraphReader::ReadBody(const onnx::GraphProto& proto,
                                                          const std::string& attribute,
                                                          const Place& place, Scope& scope,
                                                          std::vector<ValueId>* captures) {
  ANEMONE_RETURN_IF_ERROR(CheckDepth(place, scope));
  auto body = std::make_shared<Graph>();
  Scope inner;
  inner.graph = body.get();
  inner.nodes = &body->nodes;
  inner.outer = &scope;
  inner.call = scope.call;
  inner.path = absl::StrCat(scope.path, "/", attribute, ":", place.step);
  inner.depth = scope.depth + 1;
  ANEMONE_RETURN_IF_ERROR(Spend(inner.path.size()));
  ANEMONE_RETURN_IF_ERROR(ReadGraph(proto, inner));
  captures->insert(captures->end(), inner.captures.begin(), inner.captures.end());
  return body;
}

}  // namespace anemone
