#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "importer/passes/passes.h"

namespace anemone {
namespace {

// The producer of the node's first input, if both are `op_type` of the ONNX domain.
Node* ProducerOfSameKind(GraphEditor& g, const Node& node, const char* op_type) {
  if (!node.domain.empty() || node.op_type != op_type) return nullptr;
  Node* producer = g.ProducerOf(node.inputs[0]);
  if (producer == nullptr || !producer->domain.empty() || producer->op_type != op_type) {
    return nullptr;
  }
  return producer;
}

bool IsPermutation(const std::vector<int64_t>& perm) {
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

// Transpose(Transpose(x)) -> Transpose(x). Requires: both have `perm`. Keeps: origins of both, if
// the first has no other reader. If they cancel, drop-identity removes the result.
absl::StatusOr<bool> FuseTransposes(GraphEditor& g, NodeId id) {
  Node& second = g.node(id);
  Node* first = ProducerOfSameKind(g, second, "Transpose");
  if (first == nullptr) return false;
  const auto inner = IntsOf(*first, "perm");
  const auto outer = IntsOf(second, "perm");
  if (!inner.has_value() || !outer.has_value() || inner->size() != outer->size()) return false;
  if (!IsPermutation(*inner) || !IsPermutation(*outer)) return false;
  std::vector<int64_t> both;
  for (int64_t axis : *outer) both.push_back((*inner)[axis]);
  SetAttribute(second, "perm", std::move(both));
  if (g.HasOneUse(first->outputs[0])) second.origins = UnionOfOrigins(*first, second);
  g.SetInput(id, 0, first->inputs[0]);
  return true;
}

// Reshape(Reshape(x)) -> Reshape(x). Requires: the second shape is constant and copies no size from
// its input (no 0). Keeps: origins of both, if the first has no other reader.
absl::StatusOr<bool> FuseReshapes(GraphEditor& g, NodeId id) {
  Node& second = g.node(id);
  Node* first = ProducerOfSameKind(g, second, "Reshape");
  if (first == nullptr) return false;
  const Tensor* shape = g.ConstantOf(second.inputs[1]);
  if (shape == nullptr) return false;
  const auto sizes = IntsOf(*shape);
  if (!sizes.has_value() || std::count(sizes->begin(), sizes->end(), 0) > 0) return false;
  if (g.HasOneUse(first->outputs[0])) second.origins = UnionOfOrigins(*first, second);
  g.SetInput(id, 0, first->inputs[0]);
  return true;
}

}  // namespace anemone
