#include "importer/infer/infer.h"

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "importer/contrib/contrib.h"
#include "importer/edit.h"
#include "importer/infer/infer_checks.h"
#include "importer/infer/infer_context.h"
#include "importer/read/check.h"
#include "importer/write/to_onnx.h"
#include "onnx/defs/data_type_utils.h"
#include "onnx/shape_inference/implementation.h"

namespace anemone {
namespace {

using onnx::OpSchema;
using onnx::TypeProto;

absl::Status NodeError(const Model& model, const Node& node, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(NodeLabel(model, node), ": ", what, kCheckerRemedy));
}

// Removes the kind of error from ONNX's message, and the node that follows some messages;
// NodeError() adds the node.
std::string Cleaned(absl::string_view message) {
  for (absl::string_view prefix : {"[ShapeInferenceError] ", "[TypeInferenceError] "}) {
    absl::ConsumePrefix(&message, prefix);
  }
  return std::string(message.substr(0, message.find("\n")));
}

// ONNX's interned name of a tensor type; nullptr for a type that ONNX does not know.
onnx::DataType TensorTypeName(DataType type) {
  using Names = std::array<onnx::DataType, kLastDataType + 1>;
  static const Names* const names = [] {
    auto* made = new Names();
    for (int32_t i = 1; i <= kLastDataType; ++i) {
      TypeProto proto;
      proto.mutable_tensor_type()->set_elem_type(i);
      (*made)[i] = onnx::Utils::DataTypeUtils::ToType(proto);
    }
    return made;
  }();
  return (*names)[static_cast<int32_t>(type)];
}

// Corrects the spatial sizes of a ConvTranspose where ONNX's inference differs from ONNX Runtime:
// it stops at an output_shape that is smaller than the input, and adds output_padding to the sizes
// of auto_pad SAME_UPPER and SAME_LOWER, which are at most input * stride.
void CorrectConvTranspose(const Graph& graph, const Node& node, TypeProto& type) {
  const Value& x = graph.values[node.inputs[0]];
  if (!x.shape.has_value() || x.shape->size() < 2) return;
  const size_t spatial = x.shape->size() - 2;
  const auto given = IntsOf(node, "output_shape");
  const auto strides = IntsOf(node, "strides");
  const bool has_shape = given.has_value() && given->size() >= spatial;
  const bool is_same = absl::StartsWith(StringOr(node, "auto_pad", ""), "SAME_");
  onnx::TensorShapeProto& shape = *type.mutable_tensor_type()->mutable_shape();
  for (size_t i = 0; i < spatial; ++i) {
    const int at = static_cast<int>(i) + 2;
    if (has_shape) {
      while (shape.dim_size() <= at) shape.add_dim();
      shape.mutable_dim(at)->set_dim_value((*given)[given->size() - spatial + i]);
    } else if (is_same && (*x.shape)[at].known() && at < shape.dim_size() &&
               shape.dim(at).has_dim_value()) {
      int64_t most = (*x.shape)[at].size;
      const int64_t stride = strides.has_value() && i < strides->size() ? (*strides)[i] : 1;
      if (__builtin_mul_overflow(most, stride, &most)) continue;
      shape.mutable_dim(at)->set_dim_value(std::min<int64_t>(shape.dim(at).dim_value(), most));
    }
  }
}

const OpSchema::FormalParameter* Formal(const std::vector<OpSchema::FormalParameter>& formals,
                                        size_t index) {
  if (index < formals.size()) return &formals[index];
  if (formals.empty() || formals.back().GetOption() != OpSchema::Variadic) return nullptr;
  return &formals.back();
}

std::string TypesText(const OpSchema::FormalParameter& formal) {
  std::vector<std::string> names;
  for (onnx::DataType type : formal.GetTypes()) names.push_back(*type);
  std::sort(names.begin(), names.end());
  return absl::StrJoin(names, ", ");
}

// True if type or rank are unknown: the value depends on an unknown operator or on data.
bool IsUnknown(const Graph& graph, ValueId id) {
  return id != kNone && graph.values[id].other_type.empty() && !graph.values[id].shape.has_value();
}

// Exporters make names of sizes and of values by the nodes that compute them, several lines long.
constexpr size_t kLongestName = 32;

std::string ShapeText(const Shape& shape) {
  const auto append = [](std::string* out, const Dim& dim) {
    const bool is_named = !dim.symbol.empty() && dim.symbol.size() <= kLongestName;
    absl::StrAppend(out, dim.known() ? absl::StrCat(dim.size) : is_named ? dim.symbol : "?");
  };
  return absl::StrCat("[", absl::StrJoin(shape, ", ", append), "]");
}

// "'y'", or the number of the output if its name is long.
std::string OutputText(const Node& node, const Value& value, ValueId id) {
  if (value.name.size() <= kLongestName) return absl::StrCat("'", value.name, "'");
  return absl::StrCat(std::find(node.outputs.begin(), node.outputs.end(), id) -
                      node.outputs.begin());
}

Shape ShapeFrom(const onnx::TensorShapeProto& proto) {
  Shape shape(proto.dim_size());
  for (int i = 0; i < proto.dim_size(); ++i) {
    if (proto.dim(i).has_dim_value()) {
      shape[i].size = std::max<int64_t>(proto.dim(i).dim_value(), -1);
    } else {
      shape[i].symbol = proto.dim(i).dim_param();
    }
  }
  return shape;
}

bool Disagree(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].known() && b[i].known() && a[i].size != b[i].size) return true;
  }
  return false;
}

// The schema whose inference function is used for `node`. For pools in ceil mode, the functions
// before opset 22 count windows that start in the trailing padding; ONNX Runtime has never computed
// such windows.
const OpSchema* InferenceSchemaOf(const Node& node) {
  const bool pools =
      node.domain.empty() && (node.op_type == "MaxPool" || node.op_type == "AveragePool");
  return SchemaOf(node.domain, node.op_type, pools ? std::max(node.version, 22) : node.version);
}

absl::Status Explained(const Model& model, const Node& node, const absl::Status& status) {
  return status.ok() ? status : NodeError(model, node, std::string(status.message()));
}

}  // namespace

std::string PlaceOf(const Model& model, const Node& node) {
  return node.origins.empty() ? NodeLabel(model, node) : model.origins[node.origins.front()].id;
}

onnx::DataType TypeNameOf(const Value& value) {
  if (value.type != DataType::kUndefined) return TensorTypeName(value.type);
  if (value.other_type.empty()) return nullptr;
  const TypeProto type = TypeOf(value);
  if (type.value_case() == TypeProto::VALUE_NOT_SET) return nullptr;
  return onnx::Utils::DataTypeUtils::ToType(type);
}

Inference::Inference(Model& model, InferenceHooks hooks) : model_(model), hooks_(std::move(hooks)) {
  if (hooks_.constant == nullptr) {
    hooks_.constant = [](Graph& graph, ValueId id) -> absl::StatusOr<const Tensor*> {
      const Value& value = graph.values[id];
      return value.constant.has_value() ? &*value.constant : nullptr;
    };
  }
}

Inference Inference::Lenient(Model& model) {
  Inference inference(model, {});
  inference.lenient_ = true;
  return inference;
}

absl::Status Inference::InferGraph(Graph& graph) {
  ShapeData data;
  for (Node& node : graph.nodes) ANEMONE_RETURN_IF_ERROR(InferNode(graph, data, node));
  return absl::OkStatus();
}

absl::Status Inference::CheckTypes(const Graph& graph, const Node& node,
                                   const OpSchema& schema) const {
  std::vector<std::pair<const std::string*, onnx::DataType>> bound;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OpSchema::FormalParameter* formal = Formal(schema.inputs(), i);
    if (formal == nullptr || node.inputs[i] == kNone) continue;
    const Value& value = graph.values[node.inputs[i]];
    const onnx::DataType type = TypeNameOf(value);
    if (type == nullptr) continue;
    if (!formal->GetTypes().empty() && !formal->GetTypes().contains(type)) {
      return NodeError(model_, node,
                       absl::StrCat("input ", i, " '", value.name, "' is ", *type, "; want one of ",
                                    TypesText(*formal)));
    }
    if (!formal->GetIsHomogeneous()) continue;
    const auto same = std::find_if(bound.begin(), bound.end(), [&](const auto& entry) {
      return *entry.first == formal->GetTypeStr();
    });
    if (same == bound.end()) {
      bound.emplace_back(&formal->GetTypeStr(), type);
    } else if (same->second != type) {
      return NodeError(
          model_, node,
          absl::StrCat("input ", i, " '", value.name, "' is ", *type,
                       ", but an earlier input of the same type parameter is ", *same->second));
    }
  }
  return absl::OkStatus();
}

absl::Status Inference::Merge(Graph& graph, const Node& node, ValueId id,
                              const TypeProto& inferred) {
  Value& value = graph.values[id];
  if (inferred.value_case() == TypeProto::VALUE_NOT_SET) return absl::OkStatus();
  if (!inferred.has_tensor_type()) {
    value.type = DataType::kUndefined;
    value.shape.reset();
    value.other_type = inferred.SerializeAsString();
    return absl::OkStatus();
  }
  const auto type = static_cast<DataType>(inferred.tensor_type().elem_type());
  if (type != DataType::kUndefined) {
    const bool clash =
        !value.other_type.empty() || (value.type != DataType::kUndefined && value.type != type);
    if (clash) {
      return NodeError(
          model_, node,
          absl::StrCat("output '", value.name, "' is declared ", DataTypeName(value.type),
                       ", but its inferred type is ", DataTypeName(type)));
    }
    value.type = type;
  }
  if (!inferred.tensor_type().has_shape()) return absl::OkStatus();
  Shape shape = ShapeFrom(inferred.tensor_type().shape());
  if (value.shape.has_value()) {
    if (Disagree(*value.shape, shape)) {
      model_.warnings.push_back(
          {"shape-conflict", PlaceOf(model_, node),
           absl::StrCat("output ", OutputText(node, value, id), " is declared ",
                        ShapeText(*value.shape), ", but the inferred shape is ", ShapeText(shape)),
           "the inferred shape is used; re-export the model to remove this warning"});
    } else {
      for (size_t i = 0; i < shape.size(); ++i) {
        const Dim& declared = (*value.shape)[i];
        if (!shape[i].known() && (declared.known() || shape[i].symbol.empty())) shape[i] = declared;
      }
    }
  }
  value.shape = std::move(shape);
  return absl::OkStatus();
}

void TypeCaptures(const Graph& outer, const std::vector<ValueId>& captured, Graph& body) {
  for (size_t i = 0; i < captured.size(); ++i) {
    const Value& source = outer.values[captured[i]];
    Value& target = body.values[body.captures[i]];
    target.type = source.type;
    target.shape = source.shape;
    target.other_type = source.other_type;
    target.constant = source.constant;
  }
}

absl::Status Inference::InferBody(const Node& node, Graph& body) {
  const bool is_branch = node.domain.empty() && node.op_type == "If";
  branches_ += is_branch;
  const absl::Cleanup leave = [&] { branches_ -= is_branch; };  // ONNX's inference throws, too
  return hooks_.body != nullptr ? hooks_.body(body) : InferGraph(body);
}

absl::Status Inference::InferUnvisitedBodies(Graph& graph, Node& node) {
  return EditBodies(node, [&](absl::string_view, Graph& body, std::vector<ValueId>& captured) {
    TypeCaptures(graph, captured, body);
    return InferBody(node, body);
  });
}

absl::Status Inference::InferOutputs(Graph& graph, const ShapeData& data, Node& node,
                                     const OpSchema& schema) {
  // ONNX's inference treats a missing `onesided` of STFT as 0, but the schema's default is 1.
  if (node.domain.empty() && node.op_type == "STFT" && node.FindAttribute("onesided") == nullptr) {
    SetAttribute(node, "onesided", int64_t{1});
  }
  NodeContext context(*this, graph, data, node);
  std::string refusal;
  try {
    ANEMONE_RETURN_IF_ERROR(Explained(model_, node, CheckBeforeInference(graph, node)));
    ANEMONE_RETURN_IF_ERROR(CheckTypes(graph, node, schema));
    const OpSchema& infers = *InferenceSchemaOf(node);
    if (infers.has_type_and_shape_inference_function()) {
      infers.GetTypeAndShapeInferenceFunction()(context);
    } else if (infers.HasFunction()) {
      onnx::shape_inference::InferShapeForFunctionNode(*infers.GetFunction(),
                                                       onnx::OpSchemaRegistry::Instance(), context);
    } else if (infers.HasContextDependentFunction()) {  // only GroupNormalization
      onnx::propagateShapeAndTypeFromFirstInput(context);
    }
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    refusal = Cleaned(e.what());
  }
  ANEMONE_RETURN_IF_ERROR(context.status());
  if (!context.visited_bodies()) ANEMONE_RETURN_IF_ERROR(InferUnvisitedBodies(graph, node));
  if (!refusal.empty()) {
    // If inputs are unknown, the node may be valid even if ONNX's function reports an error.
    const bool blind =
        context.saw_unknown_type() || std::any_of(node.inputs.begin(), node.inputs.end(),
                                                  [&](ValueId id) { return IsUnknown(graph, id); });
    return blind ? absl::OkStatus() : NodeError(model_, node, refusal);
  }
  ANEMONE_RETURN_IF_ERROR(Explained(model_, node, CheckAfterInference(graph, node)));
  if (node.domain.empty() && node.op_type == "ConvTranspose" &&
      context.getOutputType(0)->has_tensor_type()) {
    CorrectConvTranspose(graph, node, *context.getOutputType(0));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    ANEMONE_RETURN_IF_ERROR(Merge(graph, node, node.outputs[i], *context.getOutputType(i)));
  }
  return absl::OkStatus();
}

// Infers an operator that ONNX does not know, by our own rules.
absl::Status Inference::InferUnchecked(Graph& graph, const Node& node) {
  const std::vector<TypeProto> types = InferContrib(graph, node);
  for (size_t i = 0; i < std::min(types.size(), node.outputs.size()); ++i) {
    if (node.outputs[i] == kNone) continue;
    const absl::Status status = Merge(graph, node, node.outputs[i], types[i]);
    if (!status.ok()) return lenient_ ? absl::OkStatus() : status;
  }
  return absl::OkStatus();
}

absl::Status Inference::InferNode(Graph& graph, ShapeData& data, Node& node) {
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRead, [&] { return NodeLabel(model_, node); }));
  const OpSchema* schema = SchemaOf(node.domain, node.op_type, node.version);
  if (schema == nullptr) {
    ANEMONE_RETURN_IF_ERROR(InferUnchecked(graph, node));
    return InferUnvisitedBodies(graph, node);
  }
  absl::Status status = InferOutputs(graph, data, node, *schema);
  if (status.ok()) {
    PropagateShapeData(*schema, graph, data, node);
    return status;
  }
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  if (lenient_) return absl::OkStatus();
  if (branches_ == 0) return status;
  ++conflicts_;
  const std::string label = NodeLabel(model_, node);
  const absl::string_view what = absl::StripSuffix(status.message(), kCheckerRemedy);
  model_.warnings.push_back({"unreachable-branch", PlaceOf(model_, node),
                             std::string(absl::StripPrefix(what, label + ": ")),
                             "the model fails if it takes this branch with these sizes"});
  return absl::OkStatus();
}

}  // namespace anemone
