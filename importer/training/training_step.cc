#include "importer/training/training_step.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/memory_limit.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"
#include "importer/elements.h"
#include "importer/gradients/backward.h"
#include "importer/operators/operators.h"
#include "importer/simplify.h"
#include "importer/training/losses.h"
#include "importer/training/optimizers.h"

namespace anemone {
namespace {

// Of --train-only in an error.
constexpr int kShownPatterns = 120;

// A constant with an element beyond this is a mask, not a weight.
constexpr double kLargestWeight = 1e4;

bool IsMask(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (!(std::abs(ElementAsDouble(tensor, i)) <= kLargestWeight)) return true;
  }
  return false;
}

// The values of `graph` that can be trained: float constants, and inputs with a default.
std::vector<ValueId> Candidates(const Graph& graph) {
  std::vector<bool> is_weight(graph.values.size()), is_operand(graph.values.size());
  std::vector<bool> is_captured(graph.values.size());
  for (const Node& node : graph.nodes) {
    const TrainingUse& use = OperatorOf(node).training;
    for (ValueId v : node.captures) is_captured[v] = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNone || (use.never_weights >> i & 1) != 0) continue;
      is_weight[v] = true;
      is_operand[v] = is_operand[v] || use.has_weights;
    }
  }
  std::vector<ValueId> found;
  for (ValueId v = 0; v < static_cast<ValueId>(graph.values.size()); ++v) {
    const Value& value = graph.values[v];
    const auto fallback = graph.defaults.find(v);
    const Tensor* tensor = value.constant                     ? &*value.constant
                           : fallback != graph.defaults.end() ? &fallback->second
                                                              : nullptr;
    if (tensor == nullptr || !is_weight[v] || is_captured[v] || value.name.empty()) continue;
    if (value.type != DataType::kFloat && value.type != DataType::kFloat16) continue;
    if (tensor->elements() == 0 || tensor->dims().empty()) continue;
    if (tensor->elements() == 1 && !is_operand[v]) continue;
    if (!IsMask(*tensor)) found.push_back(v);
  }
  return found;
}

bool MatchesAny(const std::string& patterns, const std::string& name) {
  if (patterns.empty()) return true;
  const std::vector<std::string> each = absl::StrSplit(patterns, ',');
  return std::any_of(each.begin(), each.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// Makes the weights inputs of the graph, so that they are not folded into other constants. Returns
// their values by name.
absl::StatusOr<std::map<std::string, Tensor>> TakeWeights(Graph& graph,
                                                          const std::string& patterns) {
  const std::vector<ValueId> candidates = Candidates(graph);
  std::map<std::string, Tensor> taken;
  for (ValueId v : candidates) {
    Value& value = graph.values[v];
    if (!MatchesAny(patterns, value.name)) continue;
    const WorkPlace place([&] { return absl::StrCat("weight '", value.name, "'"); });
    if (value.constant) {
      taken[value.name] = value.constant->Copy();
      value.constant.reset();
      graph.inputs.push_back(v);
    } else {
      taken[value.name] = graph.defaults.at(v).Copy();
      graph.defaults.erase(v);
    }
  }
  // Other inputs with a default are constants of a step.
  for (const auto& [v, tensor] : std::exchange(graph.defaults, {})) {
    MakeConstant(graph.values[v], tensor);
    std::erase(graph.inputs, v);
  }
  if (!taken.empty()) return taken;
  std::string message = "no weight to train: ";
  if (candidates.empty()) {
    absl::StrAppend(&message, "the main graph has no float initializer");
  } else {
    absl::StrAppend(&message, "'", Cut(Printable(patterns), kShownPatterns),
                    "' matches none of the ", candidates.size(), " weights; the first is '",
                    Printable(graph.values[candidates.front()].name), "'");
  }
  return UsageError(message);
}

// A step of one opset: importing it again, and ONNX Runtime, need that.
absl::Status CheckOpset(const Model& model) {
  for (const Node& node : model.graph.nodes) {
    if (!node.domain.empty() || node.version > kWorkingOpset) {
      return absl::InvalidArgumentError(absl::StrCat(
          NodeLabel(model, node), ": training does not support this operator (",
          node.domain.empty() ? absl::StrCat("of opset ", node.version) : node.domain, ")"));
    }
  }
  return absl::OkStatus();
}

// The last nodes before the update that only it needs: the products that are gradients of weights.
std::vector<NodeId> UpdateNodes(const Graph& graph, size_t first_of_update) {
  std::vector<bool> inside(graph.nodes.size());
  const auto consumers = ConsumersOf(graph);
  std::vector<bool> is_output(graph.values.size());
  for (ValueId v : graph.outputs) is_output[v] = true;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (i >= first_of_update) {
      inside[i] = true;
      continue;
    }
    if (!OperatorOf(node).training.may_update) continue;
    bool all = true, any = false;
    for (ValueId v : node.outputs) {
      if (v == kNone) continue;
      if (is_output[v]) all = false;
      for (NodeId reader : consumers[v]) {
        any = true;
        if (!inside[reader]) all = false;
      }
    }
    inside[i] = all && any;
  }
  std::vector<NodeId> update;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i]) update.push_back(static_cast<NodeId>(i));
  }
  return update;
}

// Makes the gradients the outputs.
void OutputGradients(GraphWriter& w, const std::vector<Gradient>& gradients, TrainingStep& step) {
  for (const Gradient& g : gradients) {
    w.set_place("training/gradient", {});
    const ValueId output =
        AddValue(w.graph(), w.names().Fresh(absl::StrCat("training/", g.name, "/gradient")));
    w.EmitTo(output, "Mul",
             {g.gradient, w.Scalar(w.value(g.weight).type, 1 / step.options.loss_scale)});
    w.graph().values[output].type = w.value(g.weight).type;
    w.graph().values[output].shape = w.value(g.weight).shape;
    w.graph().outputs.push_back(output);
    step.gradients[g.name] = w.value(output).name;
  }
}

}  // namespace

absl::StatusOr<TrainingStep> MakeTrainingStep(Model model, const TrainingOptions& options,
                                              const Evaluator& evaluate) {
  ANEMONE_RETURN_IF_ERROR(CheckOptions(options));
  TrainingStep step = {.options = options};
  Graph& graph = model.graph;
  ANEMONE_ASSIGN_OR_RETURN(const LossForm form, ParseLoss(options.loss, graph));
  ANEMONE_ASSIGN_OR_RETURN(const auto weights, TakeWeights(graph, options.train_only));
  ANEMONE_RETURN_IF_ERROR(Simplify(model, {.evaluate = evaluate}));
  NameScope names(graph);
  std::vector<std::string> weight_names;
  weight_names.reserve(weights.size());
  for (const auto& [name, tensor] : weights) weight_names.push_back(name);
  ANEMONE_RETURN_IF_ERROR(WriteTrainedForms(model, names, weight_names, evaluate));
  ANEMONE_RETURN_IF_ERROR(CheckOpset(model));

  GraphWriter writer(graph, names);
  writer.set_place("training/loss", {});
  ANEMONE_ASSIGN_OR_RETURN(const Loss loss, WriteLoss(writer, form, options));
  step.classes = loss.classes;
  step.labels = form.target;
  std::vector<ValueId> wanted;
  std::map<ValueId, Tensor> first;
  for (ValueId v : graph.inputs) {
    const auto found = weights.find(graph.values[v].name);
    if (found == weights.end()) continue;
    wanted.push_back(v);
    first[v] = found->second;
  }
  ANEMONE_ASSIGN_OR_RETURN(const auto found,
                           WriteGradients(model, names, {{loss.by, loss.seed}}, wanted));
  std::vector<Gradient> gradients;
  for (ValueId v : wanted) {
    const auto gradient = found.find(v);
    if (gradient != found.end()) {
      gradients.push_back({graph.values[v].name, v, gradient->second});
    } else if (!options.train_only.empty()) {
      return UsageError(absl::StrCat("the loss does not depend on the weight '",
                                     Printable(graph.values[v].name), "'; do not train it"));
    } else {
      MakeConstant(graph.values[v], first.at(v));
      std::erase(graph.inputs, v);
    }
  }
  if (gradients.empty()) {
    return UsageError(
        "the loss does not depend on any weight of the model; choose another output or loss");
  }
  const ValueId output = AddValue(graph, names.Fresh("training/loss/output"));
  writer.EmitTo(output, "Identity", {loss.value});
  graph.values[output].type = DataType::kFloat;
  graph.values[output].shape = Shape{{.size = 1}};
  graph.outputs = {output};
  step.loss = graph.values[output].name;
  const size_t first_of_update = graph.nodes.size();
  if (options.optimizer == "none") {
    OutputGradients(writer, gradients, step);
  } else {
    ANEMONE_RETURN_IF_ERROR(WriteUpdate(writer, gradients, first, step));
    if (options.update_on_cpu) step.update = UpdateNodes(graph, first_of_update);
  }
  step.model = std::move(model);
  return step;
}

}  // namespace anemone
