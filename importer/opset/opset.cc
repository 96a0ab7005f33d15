#include "importer/opset/opset.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/infer/infer.h"
#include "importer/operators/operators.h"
#include "importer/opset/opset_lifts.h"
#include "importer/read/check.h"
#include "onnx/defs/schema.h"

namespace anemone {
namespace {

using onnx::OpSchema;

// Experimental operators of ONNX: no library implements them, but ONNX defines some as functions.
constexpr absl::string_view kPreviewDomain = "ai.onnx.preview";

bool SameParameters(const std::vector<OpSchema::FormalParameter>& a,
                    const std::vector<OpSchema::FormalParameter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.GetOption() == y.GetOption() && x.GetIsHomogeneous() == y.GetIsHomogeneous() &&
           x.GetMinArity() == y.GetMinArity();
  });
}

bool Allows(const std::vector<OpSchema::FormalParameter>& formals, const std::vector<ValueId>& ids,
            const Graph& graph) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const OpSchema::FormalParameter& formal = i < formals.size() ? formals[i] : formals.back();
    if (ids[i] == kNone || formal.GetTypes().empty()) continue;
    const onnx::DataType type = TypeNameOf(graph.values[ids[i]]);
    if (type == nullptr || !formal.GetTypes().contains(type)) return false;
  }
  return true;
}

bool IsDefault(const Attribute& attribute, const onnx::AttributeProto& fallback) {
  if (fallback.type() == onnx::AttributeProto::UNDEFINED) return false;
  if (const auto* i = std::get_if<int64_t>(&attribute.value)) return *i == fallback.i();
  if (const auto* f = std::get_if<float>(&attribute.value)) return *f == fallback.f();
  if (const auto* s = std::get_if<std::string>(&attribute.value)) return *s == fallback.s();
  return false;
}

// True if a node newer than the working opset has the same meaning there. In that case, removes
// attributes that the working opset does not have from the node; they have their default values.
bool Relabels(const Graph& graph, Node& node, const OpSchema& newer, const OpSchema& working) {
  if (working.deprecated() || !SameParameters(newer.inputs(), working.inputs()) ||
      !SameParameters(newer.outputs(), working.outputs())) {
    return false;
  }
  std::vector<std::string> gone;
  for (const Attribute& attribute : node.attributes) {
    if (working.attributes().contains(attribute.name)) continue;
    const auto known = newer.attributes().find(attribute.name);
    if (known == newer.attributes().end() || !IsDefault(attribute, known->second.default_value)) {
      return false;
    }
    gone.push_back(attribute.name);
  }
  for (const auto& [name, attribute] : working.attributes()) {
    const auto known = newer.attributes().find(name);
    if (known == newer.attributes().end()) return false;
    const bool same = known->second.default_value.SerializeAsString() ==
                      attribute.default_value.SerializeAsString();
    if (!same && node.FindAttribute(name) == nullptr) return false;
  }
  if (!Allows(working.inputs(), node.inputs, graph) ||
      !Allows(working.outputs(), node.outputs, graph)) {
    return false;
  }
  for (const std::string& name : gone) RemoveAttribute(node, name);
  return true;
}

// The oldest version above the working opset in which the node has the same meaning: ONNX Runtime
// may not support the version of the file.
int OldestVersion(const Graph& graph, Node& node, const OpSchema& own) {
  for (int version = kWorkingOpset + 1; version < own.since_version(); ++version) {
    const OpSchema* older = SchemaOf("", node.op_type, version);
    if (older != nullptr && Relabels(graph, node, own, *older)) return version;
  }
  return std::min(node.version, std::max(own.since_version(), kWorkingOpset + 1));
}

// Converts the nodes of graphs to the working opset, and infers types in the same pass.
class Lifter {
 public:
  Lifter(Model& model, const std::set<std::string>& expanded)
      : model_(model),
        expanded_(expanded),
        names_(model.graph),
        inference_(model,
                   {.constant = nullptr, .body = [this](Graph& body) { return LiftGraph(body); }}) {
  }

  absl::Status LiftGraph(Graph& graph) {
    ShapeData data;
    for (Node& node : std::exchange(graph.nodes, {})) {
      ANEMONE_RETURN_IF_ERROR(Visit(graph, data, std::move(node), kMostLifts));
    }
    SetProducers(graph);
    return absl::OkStatus();
  }

 private:
  absl::Status Visit(Graph& graph, ShapeData& data, Node node, int lifts_left);

  Model& model_;
  const std::set<std::string>& expanded_;
  NameScope names_;
  Inference inference_;
};

absl::Status Lifter::Visit(Graph& graph, ShapeData& data, Node node, int lifts_left) {
  const auto infer = [&] { return inference_.InferNode(graph, data, node); };
  LiftContext context(model_, graph, names_, node);
  LiftedForm form = LiftedForm::kAsIs;
  if (node.domain.empty() && expanded_.contains(node.op_type)) {
    ANEMONE_RETURN_IF_ERROR(infer());
    ANEMONE_ASSIGN_OR_RETURN(const bool expanded, InlineDefinition(context));
    if (expanded) form = LiftedForm::kReplaced;
  }
  if (form == LiftedForm::kAsIs) {
    ANEMONE_ASSIGN_OR_RETURN(form, LiftNode(context, node, infer));
  }
  if (form == LiftedForm::kReplaced) {
    ANEMONE_RETURN_IF_ERROR(CheckNesting(context, lifts_left));
    for (Node& made : std::exchange(context.emitted(), {})) {
      ANEMONE_RETURN_IF_ERROR(Visit(graph, data, std::move(made), lifts_left - 1));
    }
    return absl::OkStatus();
  }
  if (form == LiftedForm::kAsIs) ANEMONE_RETURN_IF_ERROR(infer());
  graph.nodes.push_back(std::move(node));
  return absl::OkStatus();
}

bool IsKept(const Node& node) { return node.domain.empty() && node.version > kWorkingOpset; }

// The newest version of the nodes that remain newer than the working opset.
int NewestKeptVersion(const Graph& graph) {
  int newest = kWorkingOpset;
  for (const Node& node : graph.nodes) {
    if (IsKept(node)) newest = std::max(newest, node.version);
    for (const Attribute::GraphPtr& body : BodiesOf(node)) {
      newest = std::max(newest, NewestKeptVersion(*body));
    }
  }
  return newest;
}

// Sets `version` on all nodes whose operator is the same in it: only nodes of equal versions can be
// in one segment.
void ShareKeptVersion(Graph& graph, int version) {
  for (Node& node : graph.nodes) {
    if (IsKept(node) &&
        SchemaOf("", node.op_type, node.version) == SchemaOf("", node.op_type, version)) {
      node.version = version;
    }
    if (BodiesOf(node).empty()) continue;
    (void)EditBodies(node, [&](absl::string_view, Graph& body, std::vector<ValueId>&) {
      ShareKeptVersion(body, version);
      return absl::OkStatus();
    });
  }
}

}  // namespace

absl::Status CheckNesting(const LiftContext& context, int lifts_left) {
  if (lifts_left > 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(NodeLabel(context.model(), context.node()),
                                                   ": functions are nested more than ", kMostLifts,
                                                   " deep; export the model without them"));
}

absl::StatusOr<LiftedForm> LiftNode(LiftContext& context, Node& node,
                                    absl::FunctionRef<absl::Status()> infer) {
  if (node.domain == kPreviewDomain) {
    ANEMONE_RETURN_IF_ERROR(infer());
    ANEMONE_ASSIGN_OR_RETURN(const bool expanded, InlineDefinition(context));
    return expanded ? LiftedForm::kReplaced : LiftedForm::kInferred;
  }
  if (!node.domain.empty()) return LiftedForm::kAsIs;
  const OpSchema* own = SchemaOf("", node.op_type, node.version);
  if (own == nullptr) return LiftedForm::kAsIs;
  const OpSchema* working = SchemaOf("", node.op_type, kWorkingOpset);
  const LiftFunction lift = FindLift(node);
  if (lift == nullptr && (own == working || own->since_version() < kWorkingOpset)) {
    if (own != working) RemoveAttribute(node, "consumed_inputs");
    node.version = kWorkingOpset;
    return LiftedForm::kAsIs;
  }
  // Infer by the rules of the node's original opset, so that errors describe the node of the file.
  ANEMONE_RETURN_IF_ERROR(infer());
  if (lift == nullptr && working != nullptr && Relabels(context.graph(), node, *own, *working)) {
    node.version = kWorkingOpset;
    return LiftedForm::kInferred;
  }
  if (lift != nullptr) {
    ANEMONE_RETURN_IF_ERROR(lift(context));
    if (!context.emitted().empty()) return LiftedForm::kReplaced;
  }
  // A lift of an operator that the working opset does not have may leave a form to ONNX's function.
  if (lift == nullptr || working == nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const bool expanded, InlineDefinition(context));
    if (expanded) return LiftedForm::kReplaced;
  }
  if (node.version > kWorkingOpset) node.version = OldestVersion(context.graph(), node, *own);
  return LiftedForm::kInferred;
}

void ShareNewerVersions(Model& model) {
  const int newest = NewestKeptVersion(model.graph);
  if (newest > kWorkingOpset) ShareKeptVersion(model.graph, newest);
}

LiftFunction FindLift(const Node& node) {
  const Lift& lift = OperatorOf(node).lift;
  return lift.from <= node.version && node.version <= lift.up_to ? lift.lift : nullptr;
}

ValueId LiftContext::input(size_t index) const { return InputOr(node_, index); }

ValueId LiftContext::output(size_t index) const { return OutputOr(node_, index); }

absl::StatusOr<int64_t> LiftContext::RankOf(size_t index) const {
  const ValueId id = input(index);
  if (id == kNone || !value(id).shape.has_value()) {
    return Refuse(absl::StrCat("the rank of its input ", index,
                               " is not known, but it is needed to ",
                               "convert the node from opset ", node_.version));
  }
  return static_cast<int64_t>(value(id).shape->size());
}

const Tensor* LiftContext::ConstantOf(size_t index) const {
  const ValueId id = input(index);
  return id == kNone || !value(id).constant.has_value() ? nullptr : &*value(id).constant;
}

ValueId LiftContext::NewValue() {
  const ValueId output = this->output(0);
  return AddValue(graph_, names_.Fresh(absl::StrCat(
                              output == kNone ? node_.op_type : value(output).name, "/lifted")));
}

ValueId LiftContext::Constant(Tensor tensor) {
  const ValueId id = NewValue();
  MakeConstant(graph_.values[id], std::move(tensor));
  return id;
}

ValueId LiftContext::Ints(const std::vector<int64_t>& values) {
  return Constant(Tensor::Int64s({static_cast<int64_t>(values.size())}, values));
}

ValueId LiftContext::Scalar(DataType type, double value) {
  return Constant(FromDoubles(type, {}, {value}));
}

ValueId LiftContext::Append(absl::string_view op_type, std::vector<ValueId> inputs,
                            std::vector<Attribute> attributes) {
  Node made;
  made.name = node_.name;
  made.op_type = std::string(op_type);
  made.version = kWorkingOpset;
  made.inputs = std::move(inputs);
  made.outputs = {NewValue()};
  made.attributes = std::move(attributes);
  made.origins = origins_.has_value() ? *origins_ : node_.origins;
  emitted_.push_back(std::move(made));
  return emitted_.back().outputs[0];
}

absl::Status LiftContext::EmitLast(absl::string_view op_type, std::vector<ValueId> inputs,
                                   std::vector<Attribute> attributes) {
  LiftContext::Append(op_type, std::move(inputs), std::move(attributes));
  emitted_.back().outputs = {output(0)};
  return absl::OkStatus();
}

ValueId LiftContext::Reshape(ValueId value, const std::vector<int64_t>& dims) {
  return Emit("Reshape", {value, Ints(dims)}, {{"allowzero", int64_t{1}}});
}

ValueId LiftContext::Transpose(ValueId value, const std::vector<int64_t>& perm) {
  return Emit("Transpose", {value}, {{"perm", perm}});
}

absl::Status LiftContext::EmitLifted(Node node) {
  node.version = kWorkingOpset;
  emitted_.push_back(std::move(node));
  return absl::OkStatus();
}

absl::Status LiftContext::Refuse(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(
      NodeLabel(model_, node_), ": ", what, "; correct the model, or export it for a newer opset"));
}

absl::Status BringToWorkingOpset(Model& model) {
  ANEMONE_RETURN_IF_ERROR(Lifter(model, {}).LiftGraph(model.graph));
  ShareNewerVersions(model);
  return absl::OkStatus();
}

absl::Status ExpandOperators(const std::set<std::string>& op_types, Model& model) {
  return Lifter(model, op_types).LiftGraph(model.graph);
}

}  // namespace anemone
