// importer/passes/match.h: questions that several passes ask about a graph.
#ifndef ANEMONE_IMPORTER_PASSES_MATCH_H_
#define ANEMONE_IMPORTER_PASSES_MATCH_H_

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

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PASSES_MATCH_H_
