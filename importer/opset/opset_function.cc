// Replaces newer operators by the functions that ONNX defines for them.
#include <algorithm>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/opset/opset_lifts.h"
#include "importer/read/check.h"
#include "importer/read/reader.h"
#include "importer/write/to_onnx.h"
#include "onnx/defs/schema.h"

namespace anemone {
namespace {

using onnx::FunctionProto;
using onnx::OpSchema;

// ONNX may define a function again for a later opset, with operators of that opset. The first
// definition uses the operators closest to the working opset.
int FirstVersion(const std::vector<int>& versions) {
  return *std::min_element(versions.begin(), versions.end());
}

// Names of values that a body defines -> their new names.
using PlainNames = std::map<std::string, std::string>;

// Renames values so that their names are identifiers. ONNX builds some functions by printing a
// node's bodies and parsing the result, which requires that.
void RenamePlainly(onnx::GraphProto& graph, PlainNames names) {
  const auto define = [&](const std::string& name) {
    if (!name.empty()) names.emplace(name, absl::StrCat("anemone_value_", names.size()));
  };
  for (const auto& input : graph.input()) define(input.name());
  for (const auto& initializer : graph.initializer()) define(initializer.name());
  for (const auto& node : graph.node()) {
    for (const std::string& output : node.output()) define(output);
  }
  const auto rename = [&](std::string* name) {
    const auto plain = names.find(*name);
    if (plain != names.end()) *name = plain->second;
  };
  graph.set_name("body");
  graph.clear_value_info();
  for (auto& input : *graph.mutable_input()) rename(input.mutable_name());
  for (auto& output : *graph.mutable_output()) rename(output.mutable_name());
  for (auto& initializer : *graph.mutable_initializer()) rename(initializer.mutable_name());
  for (auto& node : *graph.mutable_node()) {
    node.clear_name();
    for (std::string& input : *node.mutable_input()) rename(&input);
    for (std::string& output : *node.mutable_output()) rename(&output);
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) RenamePlainly(*attribute.mutable_g(), names);
    }
  }
}

// Builds the function for this node; false if ONNX has none for its types or attributes.
absl::StatusOr<bool> BuildFunction(LiftContext& c, const OpSchema& schema,
                                   FunctionProto* function) {
  ANEMONE_ASSIGN_OR_RETURN(onnx::NodeProto proto, ToProto(c.graph(), c.node()));
  for (auto& attribute : *proto.mutable_attribute()) {
    if (attribute.has_g()) RenamePlainly(*attribute.mutable_g(), {});
  }
  std::vector<onnx::TypeProto> types;
  for (ValueId id : c.node().inputs) {
    types.push_back(id == kNone ? onnx::TypeProto() : TypeOf(c.value(id)));
  }
  try {
    if (schema.HasFunction()) {
      const FunctionProto* known =
          schema.GetFunction(FirstVersion(schema.function_opset_versions()));
      if (known == nullptr) return false;
      *function = *known;
      return true;
    }
    if (!schema.HasContextDependentFunction()) return false;
    const onnx::FunctionBodyBuildContextImpl context(proto, types);
    return schema.BuildContextDependentFunction(
        context, *function, FirstVersion(schema.context_dependent_function_opset_versions()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    return c.Refuse(absl::StrCat("ONNX's function body for it cannot be built: ", e.what()));
  }
}

// A function refers to attributes of the call by name. Adds the operator's defaults to the function
// for attributes that the call does not set.
void AddDefaults(const OpSchema& schema, FunctionProto* function) {
  for (const auto& [name, attribute] : std::map<std::string, OpSchema::Attribute>(
           schema.attributes().begin(), schema.attributes().end())) {
    if (attribute.default_value.has_name()) {
      *function->add_attribute_proto() = attribute.default_value;
    }
  }
}

}  // namespace

absl::StatusOr<bool> InlineDefinition(LiftContext& c) {
  const Node& node = c.node();
  const OpSchema* schema = SchemaOf(node.domain, node.op_type, node.version);
  if (schema == nullptr) return false;
  FunctionProto function;
  ANEMONE_ASSIGN_OR_RETURN(const bool built, BuildFunction(c, *schema, &function));
  if (!built) return false;
  AddDefaults(*schema, &function);
  ANEMONE_ASSIGN_OR_RETURN(c.emitted(),
                           ExpandFunction(c.model(), c.graph(), c.names(), node, function));
  return true;
}

}  // namespace anemone
