#include "tools/command/model_weights.h"

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "importer/elements.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

// Smaller weights save little, and a scale or a table may be larger than the saving.
constexpr int64_t kLeastElements = 1024;

std::string WhyNot(const Tensor& weight) {
  if (weight.type() != DataType::kFloat) {
    return absl::StrCat("it is ", DataTypeName(weight.type()), ", only float32 can be compressed");
  }
  if (weight.compressed() != nullptr) return "it is already compressed";
  if (weight.is_fill()) return "all its elements are equal";
  if (weight.elements() < kLeastElements) {
    return absl::StrCat("it has fewer than ", kLeastElements, " elements");
  }
  return "";
}

void Count(double element, NotFinite& found) {
  if (std::isnan(element)) ++found.nans;
  if (std::isinf(element)) ++found.infinities;
}

NotFinite CountNotFinite(const Value& value) {
  NotFinite found{value.name};
  const Tensor& tensor = *value.constant;
  if (const Compressed* stored = tensor.compressed()) {
    for (float scale : stored->scales()) Count(scale, found);
    for (float entry : stored->values()) Count(entry, found);
  } else if (IsFloating(tensor.type()) && tensor.elements() > 0) {
    const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
    for (int64_t i = 0; i < count; ++i) Count(ElementAsDouble(tensor, i), found);
  }
  return found;
}

}  // namespace

std::vector<Weight> FindWeights(const Graph& graph) {
  std::vector<Weight> weights;
  absl::flat_hash_set<ValueId> seen;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!HasInput(node, 1) || !graph.values[node.inputs[1]].constant.has_value()) continue;
    const Tensor& tensor = *graph.values[node.inputs[1]].constant;
    const Operator& op = OperatorOf(node);
    if (op.weight_axes == nullptr) continue;
    const auto axes = op.weight_axes(node, static_cast<int>(tensor.dims().size()));
    if (!axes || !seen.insert(node.inputs[1]).second) continue;
    weights.push_back({node.inputs[1], static_cast<NodeId>(i), axes->channels, axes->depth,
                       std::nullopt, WhyNot(tensor)});
  }
  return weights;
}

std::vector<NotFinite> FindNotFinite(const Graph& graph) {
  absl::flat_hash_set<ValueId> of_products;
  for (const Node& node : graph.nodes) {
    if (OperatorOf(node).weight_axes == nullptr) continue;
    of_products.insert(node.inputs.begin(), node.inputs.end());
  }
  std::vector<NotFinite> found;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!graph.values[i].constant.has_value()) continue;
    NotFinite counted = CountNotFinite(graph.values[i]);
    const bool is_wrong = counted.nans > 0 ||
                          (counted.infinities > 0 && of_products.contains(static_cast<ValueId>(i)));
    if (is_wrong) found.push_back(std::move(counted));
  }
  return found;
}

std::string NotFiniteText(const std::vector<NotFinite>& found) {
  const NotFinite& first = found.front();
  std::string text = absl::StrCat("initializer '", first.name, "' has ");
  if (first.nans > 0) absl::StrAppend(&text, first.nans, " NaN");
  if (first.nans > 0 && first.infinities > 0) text += " and ";
  if (first.infinities > 0) absl::StrAppend(&text, first.infinities, " infinite");
  text += first.nans + first.infinities == 1 ? " element" : " elements";
  if (found.size() > 1) {
    absl::StrAppend(&text, "; ", found.size() - 1, " more initializer",
                    found.size() == 2 ? " has some" : "s have some");
  }
  return text;
}

}  // namespace anemone
