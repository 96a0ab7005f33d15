#include <utility>
#include <vector>

#include "importer/passes/passes.h"

namespace anemone {

// Concat(x, nothing) -> Concat(x): an input without elements goes away. ONNX's functions make such
// of what may be left over (RotaryEmbedding of the whole head). Needs: its sizes known, and another
// input that stays. Keeps: the node's origin.
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
