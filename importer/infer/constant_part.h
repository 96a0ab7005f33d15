// importer/infer/constant_part.h: nodes whose inputs are constant, as a graph for an evaluator.
#ifndef ANEMONE_IMPORTER_INFER_CONSTANT_PART_H_
#define ANEMONE_IMPORTER_INFER_CONSTANT_PART_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

struct ConstantPart {
  Graph graph;                  // copies of the nodes, and of the values that they read and make
  std::vector<ValueId> wanted;  // its outputs, as values of the whole graph
};

// The part makes what is read elsewhere, too: `uses` has the number of readers of each value. It
// has no outputs if there are none. kFailedPrecondition: a value is not constant, and none of the
// nodes makes it.
absl::StatusOr<ConstantPart> ConstantPartOf(const Graph& whole, absl::Span<const Node> nodes,
                                            absl::Span<const int> uses);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_CONSTANT_PART_H_
