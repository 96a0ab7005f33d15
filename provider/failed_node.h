// provider/failed_node.h: which node of the user's ONNX Runtime means.
#ifndef ANEMONE_PROVIDER_FAILED_NODE_H_
#define ANEMONE_PROVIDER_FAILED_NODE_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// True of an error of ONNX Runtime about a node without a name.
bool LacksNodeName(const absl::Status& status);

// ONNX Runtime names the operator and the name of a node that fails in a run. If that node has no
// name, returns the error with the nodes of the graph that it may be, by what they make, and with
// what to do. As it is, if the graph has no nodes.
absl::Status WithFailedNode(const absl::Status& status, const Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_FAILED_NODE_H_
