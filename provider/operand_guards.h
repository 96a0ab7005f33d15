// provider/operand_guards.h: nodes of ONNX that fail if a tensor has no elements, before nodes on
// which ONNX Runtime would end the process then (importer/infer/no_elements.h).
//
//   GuardOperands(graph, segment.nodes, model);  // `model` has these nodes
//
// Only operands whose sizes a run decides get such nodes; what is known before is refused before.
#ifndef ANEMONE_PROVIDER_OPERAND_GUARDS_H_
#define ANEMONE_PROVIDER_OPERAND_GUARDS_H_

#include "absl/types/span.h"
#include "importer/graph.h"
#include "importer/write/to_onnx.h"

namespace anemone {

// ONNX Runtime's error has the name of the node that failed: it says which node wants elements.
void GuardOperands(const Graph& graph, absl::Span<const NodeId> nodes, OnnxModel& model);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_OPERAND_GUARDS_H_
