#include <algorithm>

#include "importer/passes/passes.h"

namespace anemone {

// Removes a node whose outputs are all unused, and the nodes that only it needed.
absl::StatusOr<bool> DropDead(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  const auto used = [&](ValueId output) { return output != kNone && g.UsesOf(output) > 0; };
  if (std::any_of(node.outputs.begin(), node.outputs.end(), used)) return false;
  g.Erase(id);
  return true;
}

}  // namespace anemone
