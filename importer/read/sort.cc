#include "importer/read/sort.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/edit.h"

namespace anemone {
namespace {

constexpr size_t kMostShown = 12;  // nodes of a cycle in a message

// Calls `visit` with the producer of each value that the node reads.
template <class Visit>
void ForEachProducer(const Graph& graph, const Node& node, Visit visit) {
  for (const std::vector<ValueId>* list : {&node.inputs, &node.captures}) {
    for (ValueId value : *list) {
      if (value != kNone && graph.values[value].producer != kNone) {
        visit(graph.values[value].producer);
      }
    }
  }
}

bool IsSorted(const Graph& graph) {
  bool sorted = true;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    ForEachProducer(graph, graph.nodes[id], [&](NodeId producer) { sorted &= producer < id; });
  }
  return sorted;
}

std::string ShortLabel(const Model& model, const Node& node) {
  if (!node.name.empty()) return node.name;
  return node.origins.empty() ? node.op_type : model.origins[node.origins.front()].id;
}

// `waiting[n]` is true if node n could not be placed. Such a node has a producer that could not be
// placed either, so following these producers must reach a node twice.
absl::Status CycleError(const Model& model, const Graph& graph, const std::vector<bool>& waiting) {
  std::vector<int> seen_at(graph.nodes.size(), -1);
  std::vector<NodeId> path;
  NodeId at =
      static_cast<NodeId>(std::find(waiting.begin(), waiting.end(), true) - waiting.begin());
  while (seen_at[at] < 0) {
    seen_at[at] = static_cast<int>(path.size());
    path.push_back(at);
    NodeId next = kNone;
    ForEachProducer(graph, graph.nodes[at], [&](NodeId producer) {
      if (next == kNone && waiting[producer]) next = producer;
    });
    at = next;
  }
  path.erase(path.begin(), path.begin() + seen_at[at]);
  std::reverse(path.begin(), path.end());  // from producer to reader
  std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
  std::vector<std::string> shown;
  for (size_t i = 0; i < path.size() && i < kMostShown; ++i) {
    shown.push_back(ShortLabel(model, graph.nodes[path[i]]));
  }
  if (path.size() > kMostShown) shown.push_back(absl::StrCat(path.size() - kMostShown, " more"));
  shown.push_back(shown.front());
  return absl::InvalidArgumentError(
      absl::StrCat("graph '", graph.name, "' has a cycle: ", absl::StrJoin(shown, " -> "),
                   "; correct the model, a node must not depend on its own output"));
}

}  // namespace

absl::Status SortNodes(const Model& model, Graph& graph) {
  SetProducers(graph);
  if (IsSorted(graph)) return absl::OkStatus();
  const size_t count = graph.nodes.size();
  std::vector<int> missing(count, 0);  // inputs whose producer is not placed yet
  std::vector<std::vector<NodeId>> readers(count);
  for (size_t id = 0; id < count; ++id) {
    ForEachProducer(graph, graph.nodes[id], [&](NodeId producer) {
      ++missing[id];
      readers[producer].push_back(static_cast<NodeId>(id));
    });
  }
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (size_t id = 0; id < count; ++id) {
    if (missing[id] == 0) ready.push(static_cast<NodeId>(id));
  }
  std::vector<NodeId> order;
  std::vector<bool> waiting(count, true);
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    waiting[id] = false;
    for (NodeId reader : readers[id]) {
      if (--missing[reader] == 0) ready.push(reader);
    }
  }
  if (order.size() < count) return CycleError(model, graph, waiting);
  std::vector<Node> sorted;
  sorted.reserve(count);
  for (NodeId id : order) sorted.push_back(std::move(graph.nodes[id]));
  graph.nodes = std::move(sorted);
  SetProducers(graph);
  return absl::OkStatus();
}

}  // namespace anemone
