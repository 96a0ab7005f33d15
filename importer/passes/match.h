// importer/passes/match.h: questions that several passes ask about a graph.
#ifndef ANEMONE_IMPORTER_PASSES_MATCH_H_
#define ANEMONE_IMPORTER_PASSES_MATCH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "importer/edit.h"
#include "importer/elements.h"

namespace anemone {

// True if `node` is this operator of ONNX; false for nullptr.
inline bool Is(const Node* node, absl::string_view op_type) {
  return node != nullptr && node->domain.empty() && node->op_type == op_type;
}

// True for the same value (also kNone), and for equal constants.
inline bool SameConstant(const GraphEditor& g, ValueId a, ValueId b) {
  if (a == b) return true;
  const Tensor* first = g.ConstantOf(a);
  const Tensor* second = g.ConstantOf(b);
  return first != nullptr && second != nullptr && SameTensor(*first, *second);
}

// True if the value is known to have one element.
inline bool HasOneElement(GraphEditor& g, ValueId id) {
  if (!g.value(id).is_static()) return false;
  const std::vector<int64_t> dims = g.value(id).dims();
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; });
}

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PASSES_MATCH_H_
