#include "tools/command/model_weights.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

// Smaller weights save little, and a scale or a table may be larger than the saving.
constexpr int64_t kLeastElements = 1024;

std::string WhyNot(const Tensor& weight) {
  if (weight.type() != DataType::kFloat) {
    return absl::StrCat("the type is ", DataTypeName(weight.type()),
                        ", only float32 can be compressed");
  }
  if (weight.compressed() != nullptr) return "already compressed";
  if (weight.is_fill()) return "all elements are equal";
  if (weight.elements() < kLeastElements) {
    return absl::StrCat("fewer than ", kLeastElements, " elements");
  }
  return "";
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

}  // namespace anemone
