// importer/infer/infer_checks.h: what ONNX's own inference functions do not check, or do not
// survive.
#ifndef ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_
#define ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Attributes on which an inference function would loop, index out of bounds or allocate without
// limit: `axis`, and what the operator's row (importer/operators/operators.h) checks.
// kInvalidArgument, without the node's name.
absl::Status CheckBeforeInference(const Graph& graph, const Node& node);

// Sizes of several inputs that must go together and that inference does not compare.
absl::Status CheckAfterInference(const Graph& graph, const Node& node);

// The checks of single operators, which the rows name: the first three are made before inference.
absl::Status CheckPermutation(const Graph& graph, const Node& node);  // Transpose
absl::Status CheckEquation(const Graph& graph, const Node& node);     // Einsum
absl::Status CheckOutputCount(const Graph& graph, const Node& node);  // Split
absl::Status CheckConvolution(const Graph& graph, const Node& node);  // Conv, ConvTranspose

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_
