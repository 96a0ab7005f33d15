#include <optional>

#include "importer/operators/operators.h"
#include "importer/passes/passes.h"

namespace anemone {

// A node that hands an input on as it is goes away: Identity, Dropout in inference without mask,
// Cast to the same type, Reshape and its kin, Transpose, Pad, Slice, Split, Expand and Tile that
// keep everything in place, Concat, Sum and their kin of one input, x * 1, x / 1, x + 0, x - 0 (so
// -0 may stay -0). Needs: all sizes known, but for the first two. Keeps: nothing of the node's
// origin; a graph output keeps its name, and its Identity if an input or constant is behind it.
absl::StatusOr<bool> DropIdentity(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  const Operator& op = OperatorOf(node);
  if (op.identity == nullptr || InputOr(node, 0) == kNone || OutputOr(node, 0) == kNone) {
    return false;
  }
  const std::optional<size_t> input = op.identity(g, node);
  if (!input.has_value()) return false;
  return g.Bypass(id, node.inputs[*input]);
}

}  // namespace anemone
