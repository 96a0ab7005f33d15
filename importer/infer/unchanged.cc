#include "importer/infer/unchanged.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "importer/importer.h"
#include "importer/infer/trips.h"
#include "importer/infer/unroll.h"

namespace anemone {
namespace {

ValueId BehindIdentities(const Graph& graph, ValueId value) {
  while (graph.values[value].producer != kNone) {
    const Node& node = graph.nodes[graph.values[value].producer];
    if (!node.domain.empty() || node.op_type != "Identity") break;
    value = node.inputs[0];
  }
  return value;
}

// True if the body returns the input as this output, and not as another one: a body may not return
// what it captures.
bool IsReturned(const Graph& body, ValueId input, size_t as) {
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    if (i != as && body.outputs[i] == input) return false;
  }
  return BehindIdentities(body, body.outputs[as]) == input;
}

Node IdentityOf(const Node& origin, ValueId from, ValueId to) {
  Node identity;
  identity.op_type = "Identity";
  identity.version = kWorkingOpset;
  identity.inputs = {from};
  identity.outputs = {to};
  identity.origins = OwnOrigins(origin);
  return identity;
}

void ReplaceInNodes(Graph& body, ValueId from, ValueId to) {
  for (Node& node : body.nodes) {
    std::replace(node.inputs.begin(), node.inputs.end(), from, to);
    std::replace(node.captures.begin(), node.captures.end(), from, to);
  }
}

void EraseAll(std::vector<ValueId>& values, size_t first, const std::vector<size_t>& indices) {
  for (auto k = indices.rbegin(); k != indices.rend(); ++k) {
    values.erase(values.begin() + static_cast<int64_t>(first + *k));
  }
}

}  // namespace

std::vector<Node> CaptureUnchanged(const Graph& graph, Node& node) {
  const Graph* old_body = LoopBodyOf(node);
  if (old_body == nullptr) return {};
  const size_t first_input = node.op_type == "Loop" ? 2 : 0;
  const size_t first_output = node.op_type == "Loop" ? 1 : 0;
  std::vector<size_t> unchanged;
  for (size_t k = 0; k < CarriedOf(node); ++k) {
    const ValueId input = old_body->inputs[first_input + k];
    if (IsReturned(*old_body, input, first_output + k)) unchanged.push_back(k);
  }
  if (unchanged.empty()) return {};
  auto body = std::make_shared<Graph>(*old_body);
  EraseAll(body->outputs, first_output, unchanged);
  std::vector<Node> identities;
  for (size_t k : unchanged) {
    const ValueId initial = node.inputs[first_input + k];
    if (node.outputs[k] != kNone) identities.push_back(IdentityOf(node, initial, node.outputs[k]));
    const ValueId input = body->inputs[first_input + k];
    const auto same = std::find(node.captures.begin(), node.captures.end(), initial);
    if (same != node.captures.end()) {
      ReplaceInNodes(*body, input, body->captures[same - node.captures.begin()]);
      continue;
    }
    body->values[input].name = graph.values[initial].name;
    body->captures.push_back(input);
    node.captures.push_back(initial);
  }
  EraseAll(body->inputs, first_input, unchanged);
  SetProducers(*body);
  EraseAll(node.inputs, first_input, unchanged);
  EraseAll(node.outputs, 0, unchanged);
  SetAttribute(node, "body", Attribute::GraphPtr(std::move(body)));
  return identities;
}

}  // namespace anemone
