#include "importer/gradients/backward.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/gradients/gradient.h"
#include "importer/infer/fold.h"
#include "importer/infer/infer.h"
#include "importer/operators/operators.h"
#include "importer/opset/opset.h"
#include "importer/opset/opset_lifts.h"
#include "importer/read/check.h"
#include "onnx/defs/schema.h"

namespace anemone {
namespace {

// Functions of ONNX call functions; this many levels are expanded.
constexpr int kMostExpansions = 8;

bool AnyOf(const std::vector<bool>& depends, const std::vector<ValueId>& values) {
  return std::any_of(values.begin(), values.end(),
                     [&](ValueId v) { return v != kNone && depends[v]; });
}

// For each value, whether it is a floating tensor that depends on one of `weights`.
std::vector<bool> DependsOn(const Graph& graph, const std::vector<ValueId>& weights) {
  std::vector<bool> depends(graph.values.size());
  for (ValueId weight : weights) depends[weight] = true;
  for (const Node& node : graph.nodes) {
    if (!AnyOf(depends, node.inputs) && !AnyOf(depends, node.captures)) continue;
    for (ValueId v : node.outputs) {
      if (v != kNone && IsFloating(graph.values[v].type)) depends[v] = true;
    }
  }
  return depends;
}

std::vector<ValueId> InputsNamed(const Graph& graph, const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::vector<ValueId> found;
  for (ValueId v : graph.inputs) {
    if (wanted.contains(graph.values[v].name)) found.push_back(v);
  }
  return found;
}

// The gradients need the sizes of what the node reads and writes.
absl::Status CheckSizes(const Model& model, const Node& node) {
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (ValueId v : *values) {
      if (v == kNone || model.graph.values[v].is_static()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(model, node), ": the shape of '", model.graph.values[v].name,
                       "' is not known, but training needs it; bind the free dimensions"));
    }
  }
  return absl::OkStatus();
}

// An operator of its own whose definition by ONNX has gradients, or that a step of the working
// opset cannot hold.
bool IsExpanded(const Node& node) {
  const GradientRule& rule = OperatorOf(node).gradient;
  return node.version > kWorkingOpset || (rule.vjp == nullptr && rule.refused == nullptr);
}

// Returns whether a node was replaced.
absl::StatusOr<bool> ExpandFunctions(Model& model, NameScope& names,
                                     const std::vector<ValueId>& weights) {
  Graph& graph = model.graph;
  const std::vector<bool> depends = DependsOn(graph, weights);
  bool any = false;
  for (Node& node : std::exchange(graph.nodes, {})) {
    const bool on_path = AnyOf(depends, node.inputs) || node.version > kWorkingOpset;
    if (node.domain.empty() && on_path && IsExpanded(node)) {
      LiftContext context(model, graph, names, node);
      ANEMONE_ASSIGN_OR_RETURN(const bool expanded, InlineDefinition(context));
      if (expanded) {
        any = true;
        for (Node& made : context.emitted()) graph.nodes.push_back(std::move(made));
        continue;
      }
    }
    graph.nodes.push_back(std::move(node));
  }
  SetProducers(graph);
  return any;
}

// Optional outputs that nobody reads.
void DropUnreadOutputs(Graph& graph) {
  std::vector<bool> read(graph.values.size());
  for (ValueId v : graph.outputs) read[v] = true;
  for (const Node& node : graph.nodes) {
    for (const auto* values : {&node.inputs, &node.captures}) {
      for (ValueId v : *values) {
        if (v != kNone) read[v] = true;
      }
    }
  }
  for (Node& node : graph.nodes) {
    const onnx::OpSchema* schema = SchemaOf(node.domain, node.op_type, node.version);
    const size_t least = schema == nullptr ? node.outputs.size() : schema->min_output();
    while (node.outputs.size() > least &&
           (node.outputs.back() == kNone || !read[node.outputs.back()])) {
      node.outputs.pop_back();
    }
  }
}

std::string PlaceAt(const Graph& graph, const Node& node, absl::string_view what) {
  const ValueId output = OutputOr(node, 0);
  return absl::StrCat(output == kNone ? node.op_type : graph.values[output].name, "/", what);
}

std::vector<bool> Wanted(const std::vector<bool>& depends, const Node& node) {
  std::vector<bool> wanted(node.inputs.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] = node.inputs[i] != kNone && depends[node.inputs[i]];
  }
  return wanted;
}

}  // namespace

absl::Status WriteTrainedForms(Model& model, NameScope& names,
                               const std::vector<std::string>& weights, const Evaluator& evaluate) {
  Graph& graph = model.graph;
  for (int i = 0; i < kMostExpansions; ++i) {
    ANEMONE_ASSIGN_OR_RETURN(const bool expanded,
                             ExpandFunctions(model, names, InputsNamed(graph, weights)));
    if (!expanded) break;
    ANEMONE_RETURN_IF_ERROR(InferAndFold(model, evaluate));
  }
  DropUnreadOutputs(graph);
  const std::vector<bool> depends = DependsOn(graph, InputsNamed(graph, weights));
  GraphWriter writer(graph, names);
  for (Node& node : std::exchange(graph.nodes, {})) {
    const GradientRule& rule = OperatorOf(node).gradient;
    if (rule.trained_form != nullptr && AnyOf(depends, node.inputs)) {
      ANEMONE_RETURN_IF_ERROR(CheckSizes(model, node));
      GradientContext context(model, writer, node, {}, Wanted(depends, node));
      context.set_place(PlaceAt(graph, node, "trained"), node.origins);
      ANEMONE_ASSIGN_OR_RETURN(const bool replaced, rule.trained_form(context));
      if (replaced) continue;
    }
    graph.nodes.push_back(std::move(node));
  }
  SetProducers(graph);
  return Inference(model, {}).InferGraph(graph);
}

absl::StatusOr<std::map<ValueId, ValueId>> WriteGradients(Model& model, NameScope& names,
                                                          const std::map<ValueId, ValueId>& seeds,
                                                          const std::vector<ValueId>& weights) {
  Graph& graph = model.graph;
  const std::vector<bool> depends = DependsOn(graph, weights);
  GraphWriter writer(graph, names);
  std::map<ValueId, ValueId> gradients;
  const auto add = [&](GraphWriter& w, ValueId value, ValueId part) {
    const auto [found, is_new] = gradients.emplace(value, part);
    if (!is_new) found->second = w.Add(found->second, part);
  };
  for (const auto& [value, seed] : seeds) add(writer, value, seed);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node node = graph.nodes[i];
    if (!AnyOf(depends, node.inputs) && !AnyOf(depends, node.captures)) continue;
    std::vector<ValueId> cotangents(node.outputs.size(), kNone);
    bool any = false;
    for (size_t k = 0; k < cotangents.size(); ++k) {
      const auto found = node.outputs[k] == kNone || !depends[node.outputs[k]]
                             ? gradients.end()
                             : gradients.find(node.outputs[k]);
      if (found == gradients.end()) continue;
      cotangents[k] = found->second;
      any = true;
    }
    if (!any) continue;
    ANEMONE_RETURN_IF_ERROR(CheckSizes(model, node));
    GradientContext context(model, writer, node, std::move(cotangents), Wanted(depends, node));
    context.set_place(PlaceAt(graph, node, "gradient"), node.origins);
    const GradientRule& rule = OperatorOf(node).gradient;
    if (rule.vjp == nullptr) {
      return context.Refuse(
          absl::StrCat(node.op_type, " has no gradient",
                       rule.refused == nullptr ? "" : absl::StrCat(": ", rule.refused)));
    }
    ANEMONE_RETURN_IF_ERROR(rule.vjp(context));
    for (const auto& [k, part] : context.given()) add(context, node.inputs[k], part);
  }
  std::map<ValueId, ValueId> found;
  for (ValueId weight : weights) {
    if (const auto it = gradients.find(weight); it != gradients.end()) found.insert(*it);
  }
  return found;
}

}  // namespace anemone
