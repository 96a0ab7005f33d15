#include "importer/read/check.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/contrib/contrib.h"
#include "importer/opset/opset_lifts.h"
#include "importer/read/functions.h"

namespace anemone {
namespace {

using onnx::AttributeProto;
using onnx::OpSchema;

std::string OpsetName(const Node& node) {
  return absl::StrCat("opset ", node.version,
                      node.domain.empty() ? "" : absl::StrCat(" of ", node.domain));
}

AttributeProto::AttributeType TypeOf(const Attribute& attribute) {
  const auto type = [](const auto& value) -> AttributeProto::AttributeType {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, float>) return AttributeProto::FLOAT;
    if constexpr (std::is_same_v<T, int64_t>) return AttributeProto::INT;
    if constexpr (std::is_same_v<T, std::string>) return AttributeProto::STRING;
    if constexpr (std::is_same_v<T, Tensor>) return AttributeProto::TENSOR;
    if constexpr (std::is_same_v<T, Attribute::GraphPtr>) return AttributeProto::GRAPH;
    if constexpr (std::is_same_v<T, std::vector<float>>) return AttributeProto::FLOATS;
    if constexpr (std::is_same_v<T, std::vector<int64_t>>) return AttributeProto::INTS;
    if constexpr (std::is_same_v<T, std::vector<std::string>>) return AttributeProto::STRINGS;
    if constexpr (std::is_same_v<T, std::vector<Tensor>>) return AttributeProto::TENSORS;
    if constexpr (std::is_same_v<T, std::vector<Attribute::GraphPtr>>) {
      return AttributeProto::GRAPHS;
    }
    if constexpr (std::is_same_v<T, Attribute::Other>) {
      AttributeProto proto;
      return proto.ParseFromString(value.bytes) ? proto.type() : AttributeProto::UNDEFINED;
    }
  };
  return std::visit(type, attribute.value);
}

// Checks the number of values, and that no required one is omitted. `what` is "inputs" or
// "outputs".
absl::Status CheckArity(const std::vector<ValueId>& values,
                        const std::vector<OpSchema::FormalParameter>& formals, int least, int most,
                        absl::string_view what) {
  const auto count = static_cast<int>(values.size());
  if (count < least || count > most) {
    const std::string want = most == std::numeric_limits<int>::max()
                                 ? absl::StrCat("at least ", least)
                             : least == most ? absl::StrCat(least)
                                             : absl::StrCat(least, " to ", most);
    return absl::InvalidArgumentError(absl::StrCat("want ", want, " ", what, ", got ", count));
  }
  for (size_t i = 0; i < values.size() && !formals.empty(); ++i) {
    if (values[i] != kNone) continue;
    const OpSchema::FormalParameter& formal = formals[std::min(i, formals.size() - 1)];
    // A variadic value must not be omitted either: ONNX Runtime aborts the process on such a Split.
    if (formal.GetOption() == OpSchema::Single || formal.GetOption() == OpSchema::Variadic) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": '", formal.GetName(), "', number ", i, ", is missing"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAttributes(const Node& node, const OpSchema& schema) {
  for (const Attribute& attribute : node.attributes) {
    const auto known = schema.attributes().find(attribute.name);
    if (known == schema.attributes().end()) {
      if (absl::StartsWith(attribute.name, "__")) continue;  // implementation details, says ONNX
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", attribute.name, "' is not one of ", OpsetName(node)));
    }
    if (const auto got = TypeOf(attribute); got != known->second.type) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute '", attribute.name, "': want ",
                       AttributeProto::AttributeType_Name(known->second.type), ", got ",
                       AttributeProto::AttributeType_Name(got)));
    }
  }
  std::string missing;  // the first by name, since the schema's order is that of a hash table
  for (const auto& [name, attribute] : schema.attributes()) {
    if (!attribute.required || node.FindAttribute(name) != nullptr) continue;
    if (missing.empty() || name < missing) missing = name;
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("attribute '", missing, "' is missing"));
}

absl::Status CheckAgainst(const OpSchema& schema, const Node& node) {
  ANEMONE_RETURN_IF_ERROR(
      CheckArity(node.inputs, schema.inputs(), schema.min_input(), schema.max_input(), "inputs"));
  ANEMONE_RETURN_IF_ERROR(CheckArity(node.outputs, schema.outputs(), schema.min_output(),
                                     schema.max_output(), "outputs"));
  return CheckAttributes(node, schema);
}

absl::Status UnknownOperator(const Node& node) {
  // The operator may exist in a later or an earlier opset.
  const onnx::OpSchema* any =
      SchemaOf(node.domain, node.op_type, static_cast<int>(NewestOpset(node.domain)));
  if (any == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("ONNX has no such operator in any opset of ",
                                                   node.domain.empty() ? "ai.onnx" : node.domain,
                                                   "; custom operators need their own domain"));
  }
  if (any->since_version() > node.version) {
    return absl::InvalidArgumentError(absl::StrCat("is not in ", OpsetName(node), ", which the ",
                                                   "model imports; export it for a newer opset"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("was removed in opset ", any->since_version(), ", but the model imports ",
                   OpsetName(node), "; export it for an opset below ", any->since_version()));
}

}  // namespace

int64_t NewestOpset(absl::string_view domain) {
  const auto& ranges = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  const auto it = ranges.find(std::string(domain));
  return it == ranges.end() ? 0 : it->second.second;
}

absl::StatusOr<std::map<std::string, int64_t>> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  std::map<std::string, int64_t> opsets;
  for (const onnx::OperatorSetIdProto& import : imports) {
    const std::string domain(DomainOf(import.domain()));
    const std::string what = absl::StrCat("opset ", import.version(), " of domain '",
                                          domain.empty() ? "ai.onnx" : domain, "'");
    const int64_t newest = NewestOpset(domain);
    if (import.version() < 1 || import.version() > std::numeric_limits<int>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": is not a valid version; correct the model"));
    }
    if (newest > 0 && import.version() > newest) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": is not known, the newest known is ",
                                                     newest, "; export the model for that one"));
    }
    int64_t& version = opsets[domain];  // if imported twice, the newer: nodes may need it
    version = std::max(version, import.version());
  }
  return opsets;
}

const OpSchema* SchemaOf(absl::string_view domain, absl::string_view op_type, int version) {
  // ONNX's registry copies the names into strings and looks up three maps, several times for each
  // node. Here are the answers for the ONNX domain that were not nullptr.
  thread_local absl::flat_hash_map<std::pair<absl::string_view, int>, const OpSchema*> known;
  if (domain.empty()) {
    const auto found = known.find({op_type, version});
    if (found != known.end()) return found->second;
  }
  const OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(std::string(op_type), version, std::string(domain));
  if (domain.empty() && schema != nullptr) known.try_emplace({schema->Name(), version}, schema);
  return schema;
}

absl::StatusOr<bool> CheckNode(const Node& node, absl::string_view label) {
  if (NewestOpset(node.domain) == 0) return false;
  const OpSchema* schema = SchemaOf(node.domain, node.op_type, node.version);
  if (schema == nullptr && IsContrib(node)) return true;
  // ONNX marks GroupNormalization of opset 18 to 20 as deprecated; an operator with a lift is
  // supported nevertheless.
  const bool unknown = schema == nullptr || (schema->Deprecated() && FindLift(node) == nullptr);
  if (unknown) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": ", UnknownOperator(node).message()));
  }
  const absl::Status status = CheckAgainst(*schema, node);
  if (status.ok()) return true;
  return absl::InvalidArgumentError(
      absl::StrCat(label, ": ", status.message(), "; correct the model, or export it again"));
}

}  // namespace anemone
