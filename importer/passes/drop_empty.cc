#include <utility>
#include <vector>

#include "importer/passes/passes.h"

namespace anemone {

// Concat(x, empty) -> Concat(x): removes inputs without elements. ONNX's functions create these for
// parts that may be empty (RotaryEmbedding of the whole head). Requires: known sizes of the input,
// and another input that remains. Keeps: the node's origin.
absl::StatusOr<bool> DropEmpty(GraphEditor& g, NodeId id) {
  const Node& node = g.node(id);
  if (!node.domain.empty() || node.op_type != "Concat") return false;
  std::vector<ValueId> kept;
  for (ValueId input : node.inputs) {
    const Value& value = g.value(input);
    bool empty = false;
    if (value.is_static()) {
      for (int64_t extent : value.dims()) empty |= extent == 0;
    }
    if (!empty) kept.push_back(input);
  }
  if (kept.empty() || kept.size() == node.inputs.size()) return false;
  g.SetInputs(id, std::move(kept));
  return true;
}

}  // namespace anemone
