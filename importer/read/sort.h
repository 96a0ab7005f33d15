// importer/read/sort.h: sorts a graph's nodes topologically.
#ifndef ANEMONE_IMPORTER_READ_SORT_H_
#define ANEMONE_IMPORTER_READ_SORT_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Sorts `graph.nodes` (not those of its bodies) and sets every Value::producer. Of all nodes that
// could come next, the first in the old order is next; so a sorted graph is not changed.
// kInvalidArgument if the graph has a cycle; the message shows it.
absl::Status SortNodes(const Model& model, Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_SORT_H_
