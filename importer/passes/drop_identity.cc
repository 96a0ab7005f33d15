#include <optional>

#include "importer/operators/operators.h"
#include "importer/passes/passes.h"

namespace anemone {

// Removes a node that returns an input unchanged: Identity; Dropout in inference without mask; Cast
// to the same type; Reshape and similar, Transpose, Pad, Slice, Split, Expand and Tile that keep
// all elements in place; Concat, Sum and similar with one input; x * 1, x / 1, x + 0, x - 0 (so -0
// may stay -0). Requires: all sizes known, except for Identity and Dropout. The node's origin is
// dropped. A graph output keeps its name, and keeps its Identity if that reads an input or
// constant.
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
