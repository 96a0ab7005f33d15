// importer/read/sort.h: brings a graph's nodes into an order that can be run.
#ifndef ANEMONE_IMPORTER_READ_SORT_H_
#define ANEMONE_IMPORTER_READ_SORT_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Sorts `graph.nodes` (bodies are left as they are) and sets every Value::producer. Stable: of the
// nodes that could come next, the one that stood first does; a graph in order stays as it is.
// kInvalidArgument if nodes need each other's outputs; the message shows the cycle.
absl::Status SortNodes(const Model& model, Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_SORT_H_
