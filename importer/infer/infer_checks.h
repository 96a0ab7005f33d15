// importer/infer/infer_checks.h: checks that ONNX's inference functions do not make, including
// those that keep them from crashing.
#ifndef ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_
#define ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// Checks attributes that would make an inference function loop, index out of bounds or allocate
// without limit: `axis`, and those that the operator's row (importer/operators/operators.h) checks.
// kInvalidArgument, without the node's name.
absl::Status CheckBeforeInference(const Graph& graph, const Node& node);

// Checks sizes of several inputs that must match and that inference does not compare.
absl::Status CheckAfterInference(const Graph& graph, const Node& node);

// Whether a window of these spatial sizes (of a Conv's weight, or a pool's kernel_shape) fits into
// input 0, `x`, with the node's pads and dilations. Sizes that are not known fit. kInvalidArgument
// as above.
absl::Status CheckWindow(const Node& node, const Value& x, absl::Span<const Dim> window);

// The checks of single operators, which the rows name. The first three run before inference, the
// last one after it.
absl::Status CheckPermutation(const Graph& graph, const Node& node);  // Transpose
absl::Status CheckEquation(const Graph& graph, const Node& node);     // Einsum
absl::Status CheckOutputCount(const Graph& graph, const Node& node);  // Split
absl::Status CheckConvolution(const Graph& graph, const Node& node);  // Conv, ConvTranspose

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_CHECKS_H_
