#include "importer/training/losses.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/elements.h"

namespace anemone {
namespace {

constexpr char kForms[] =
    "want cross-entropy:LOGITS:LABELS, mse:OUTPUT:TARGET or output:NAME, with outputs of the model";

ValueId Named(const Graph& graph, const std::vector<ValueId>& values, absl::string_view name) {
  for (ValueId v : values) {
    if (graph.values[v].name == name) return v;
  }
  return kNone;
}

absl::Status NoSuchOutput(const Graph& graph, absl::string_view text) {
  std::vector<std::string> names;
  names.reserve(graph.outputs.size());
  for (ValueId v : graph.outputs) names.push_back(Printable(graph.values[v].name));
  return UsageError(absl::StrCat("loss '", Printable(std::string(text)), "': ", kForms, " (",
                                 absl::StrJoin(names, ", "), ")"));
}

Sizes Without(Sizes sizes, int64_t axis) {
  sizes.erase(sizes.begin() + axis);
  return sizes;
}

// The input with the target: the model's own, or a new one.
absl::StatusOr<ValueId> TargetInput(GraphWriter& w, const LossForm& form, DataType type,
                                    const Sizes& sizes) {
  Graph& graph = w.graph();
  if (const ValueId own = Named(graph, graph.inputs, form.target); own != kNone) return own;
  const auto is_taken = [&](const Value& value) { return value.name == form.target; };
  if (std::any_of(graph.values.begin(), graph.values.end(), is_taken)) {
    return UsageError(absl::StrCat("loss: '", Printable(form.target),
                                   "' is a value of the model, but not an input; name the labels "
                                   "or the target by another name"));
  }
  const ValueId made = AddValue(graph, form.target);
  Value& value = graph.values[made];
  value.type = type;
  value.shape.emplace();
  for (int64_t size : sizes) value.shape->push_back({.size = size});
  graph.inputs.push_back(made);
  return made;
}

// The seed of a mean: a factor of 1 for each of `count` numbers.
double Share(const TrainingOptions& options, double count) {
  return options.loss_scale / (count * options.accumulate);
}

absl::StatusOr<Loss> CrossEntropy(GraphWriter& w, const LossForm& form, ValueId logits,
                                  const TrainingOptions& options) {
  const Sizes sizes = w.dims(logits);
  const DataType type = w.value(logits).type;
  if (sizes.empty()) {
    return UsageError(
        "loss: cross entropy needs logits with an axis of classes; name another output, or use "
        "mse");
  }
  const auto rank = static_cast<int64_t>(sizes.size());
  int64_t axis = rank - 1;
  TrainingOptions::Target target;
  if (const auto found = options.targets.find(form.target); found != options.targets.end()) {
    target = found->second;
  }
  const ValueId own = Named(w.graph(), w.graph().inputs, form.target);
  if (own != kNone) target = {w.value(own).type, w.dims(own)};
  if (!target.dims.empty() && target.dims[0] < 0) target.dims[0] = sizes[0];
  const bool shares = IsFloating(target.type) && target.dims == sizes;
  if (!shares && target.type != DataType::kUndefined) {
    if (target.dims != Without(sizes, axis)) axis = std::min<int64_t>(1, rank - 1);
    if (target.dims != Without(sizes, axis)) {
      return UsageError(absl::StrCat(
          "loss: labels '", Printable(form.target), "' of sizes ", DimsToString(target.dims),
          " do not fit logits of sizes ", DimsToString(sizes), "; want class numbers of sizes ",
          DimsToString(Without(sizes, rank - 1)), ", or the share of each class"));
    }
  }
  ANEMONE_ASSIGN_OR_RETURN(ValueId labels, TargetInput(w, form, shares ? type : DataType::kInt64,
                                                       shares ? sizes : Without(sizes, axis)));
  const int64_t classes = sizes[axis];
  if (!shares) {
    if (w.value(labels).type != DataType::kInt64) {
      labels = w.Emit("Cast", {labels}, {{"to", static_cast<int64_t>(DataType::kInt64)}});
    }
    const ValueId off_on = w.Constant(FromDoubles(type, {2}, {0, 1}));
    labels = w.Emit("OneHot", {labels, w.Constant(Tensor::Int64s({}, {classes})), off_on},
                    {{"axis", axis}});
  }
  Loss loss = {.by = logits, .classes = shares ? 0 : classes};
  const ValueId logs = w.Emit("LogSoftmax", {logits}, {{"axis", axis}});
  const ValueId each = w.Sum(w.Mul(labels, logs), {axis}, /*keep=*/false);
  const ValueId mean = w.Mean(each, Range(0, rank - 1), /*keep=*/false);
  loss.value = w.Emit("Neg", {rank == 1 ? each : mean});
  const ValueId chances = w.Emit("Softmax", {logits}, {{"axis", axis}});
  const double count = static_cast<double>(Product(sizes)) / static_cast<double>(classes);
  loss.seed = w.Mul(w.Sub(chances, labels), w.Scalar(type, Share(options, count)));
  return loss;
}

absl::StatusOr<Loss> MeanSquare(GraphWriter& w, const LossForm& form, ValueId output,
                                const TrainingOptions& options) {
  const Sizes sizes = w.dims(output);
  const DataType type = w.value(output).type;
  ANEMONE_ASSIGN_OR_RETURN(const ValueId target, TargetInput(w, form, type, sizes));
  if (w.value(target).type != type || w.dims(target) != sizes) {
    return UsageError(absl::StrCat("loss: the target '", Printable(form.target), "' is ",
                                   DataTypeName(w.value(target).type), " of sizes ",
                                   DimsToString(w.dims(target)), ", want ", DataTypeName(type),
                                   " of sizes ", DimsToString(sizes)));
  }
  Loss loss = {.by = output};
  const ValueId error = w.Sub(output, target);
  loss.value =
      w.Mean(w.Mul(error, error), Range(0, static_cast<int64_t>(sizes.size())), /*keep=*/false);
  const double count = static_cast<double>(Product(sizes));
  loss.seed = w.Mul(error, w.Scalar(type, 2 * Share(options, count)));
  return loss;
}

}  // namespace

absl::StatusOr<LossForm> ParseLoss(const std::string& text, const Graph& graph) {
  LossForm form;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "output:")) {
    if (Named(graph, graph.outputs, rest) == kNone) return NoSuchOutput(graph, text);
    form.output = std::string(rest);
    return form;
  }
  if (absl::ConsumePrefix(&rest, "cross-entropy:")) {
    form.kind = LossForm::kCrossEntropy;
  } else if (absl::ConsumePrefix(&rest, "mse:")) {
    form.kind = LossForm::kMeanSquare;
  } else {
    return NoSuchOutput(graph, text);
  }
  // A name may hold a colon.
  for (size_t at = rest.find(':'); at != absl::string_view::npos; at = rest.find(':', at + 1)) {
    if (Named(graph, graph.outputs, rest.substr(0, at)) == kNone) continue;
    form.output = std::string(rest.substr(0, at));
    form.target = std::string(rest.substr(at + 1));
    if (!form.target.empty()) return form;
  }
  return NoSuchOutput(graph, text);
}

absl::StatusOr<Loss> WriteLoss(GraphWriter& w, const LossForm& form,
                               const TrainingOptions& options) {
  const ValueId output = Named(w.graph(), w.graph().outputs, form.output);
  if (output == kNone || !w.value(output).is_static() || !IsFloating(w.value(output).type)) {
    return UsageError(
        absl::StrCat("loss: output '", Printable(form.output),
                     "' is not a floating tensor of known sizes; bind the free dimensions"));
  }
  Loss loss;
  if (form.kind == LossForm::kCrossEntropy) {
    ANEMONE_ASSIGN_OR_RETURN(loss, CrossEntropy(w, form, output, options));
  } else if (form.kind == LossForm::kMeanSquare) {
    ANEMONE_ASSIGN_OR_RETURN(loss, MeanSquare(w, form, output, options));
  } else {
    if (Product(w.dims(output)) != 1) {
      return UsageError(absl::StrCat("loss: output '", Printable(form.output),
                                     "' has more than one element; want one number"));
    }
    loss = {.value = output, .by = output};
    loss.seed = w.Expand(w.Scalar(w.value(output).type, Share(options, 1)), w.dims(output));
  }
  loss.value = w.Reshape(loss.value, {1});
  if (w.value(loss.by).type != DataType::kFloat) {
    loss.value = w.Emit("Cast", {loss.value}, {{"to", static_cast<int64_t>(DataType::kFloat)}});
  }
  return loss;
}

}  // namespace anemone
