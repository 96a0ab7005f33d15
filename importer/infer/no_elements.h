// importer/infer/no_elements.h: operators that ONNX Runtime 1.31 does not compute correctly of a
// tensor without elements. It ends the process, or returns memory that it did not write.
//
//   std::vector<Tensor> made = ComputeFromNothing(graph, node);  // empty: no rule applies
#ifndef ANEMONE_IMPORTER_INFER_NO_ELEMENTS_H_
#define ANEMONE_IMPORTER_INFER_NO_ELEMENTS_H_

#include <cstddef>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// True for these operators.
bool NeedsElements(const Node& node);

// An operand of a node that must have elements.
struct NeededOperand {
  size_t input = 0;
  int axis = kNone;            // the only one that matters, or kNone: all axes
  bool has_none = false;       // it is known that it has no elements
  bool may_have_none = false;  // only a run knows it
};

// Those of the node that have no elements, or perhaps none: the sequences of a GRU, the batch of an
// LSTM, the operands of an Einsum, the vector of a MatMul. The types and shapes of `graph` decide.
std::vector<NeededOperand> OperandsWithoutElements(const Graph& graph, const Node& node);

// The outputs of such a node, if their sizes are known: zeros of a product, and nothing of a
// recurrence without a batch. Omitted outputs are empty tensors.
std::vector<Tensor> ComputeFromNothing(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_NO_ELEMENTS_H_
