// importer/infer/infer_checks.h: what ONNX's own inference functions do not check, or do not
// survive.
#ifndef ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_
#define ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Attributes on which an inference function would loop, index out of bounds or allocate without
// limit. kInvalidArgument, without the node's name.
absl::Status CheckBeforeInference(const Graph& graph, const Node& node);

// Sizes of several inputs that must go together and that inference does not compare.
absl::Status CheckAfterInference(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_
