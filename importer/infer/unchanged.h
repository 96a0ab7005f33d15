// importer/infer/unchanged.h: carried values of a Loop or Scan that no iteration changes.
// TensorFlow writes the weights of a while loop like that.
#ifndef ANEMONE_IMPORTER_INFER_UNCHANGED_H_
#define ANEMONE_IMPORTER_INFER_UNCHANGED_H_

#include <vector>

#include "importer/graph.h"

namespace anemone {

// If the body returns a carried value as it got it, the body captures the initial value instead.
// Returns an Identity for each output of the node that thereby is the initial value. The node may
// have no output afterwards.
std::vector<Node> CaptureUnchanged(const Graph& graph, Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_UNCHANGED_H_
