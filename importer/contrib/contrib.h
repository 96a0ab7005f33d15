// importer/contrib/contrib.h: replaces operators of domain com.microsoft, which ONNX Runtime's
// optimizer and its model builders write, by bodies of plain ONNX nodes: Attention,
// SkipLayerNormalization, MatMulNBits and others (docs/contrib_operators.md lists them).
//
// A body is built for one node: for its attributes, inputs, outputs, types and shapes. It uses the
// same nodes as exporters do, so that the patterns of kernels/ match it. A form whose meaning plain
// nodes cannot express exactly, or whose shapes are not known, is kept for ONNX Runtime's kernel:
// nothing is guessed.
#ifndef ANEMONE_IMPORTER_CONTRIB_CONTRIB_H_
#define ANEMONE_IMPORTER_CONTRIB_CONTRIB_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "importer/contrib/body.h"
#include "importer/graph.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// True if `node` is one of these operators (importer/operators/contrib.cc), in any form. This
// includes SimplifiedLayerNormalization, although ONNX Runtime has it in the ONNX domain.
bool IsContrib(const Node& node);

// Emits the body of the node. Its nodes have the call's origin (docs/design.md, Origins), except
// those that only prepare integers (ContribBody::Aside). Returns the reason if the form is kept,
// or nullopt if it was expanded.
absl::StatusOr<std::optional<std::string>> ExpandContrib(ContribBody& body);

// Types of the node's outputs, as far as they are known, for forms that are kept.
std::vector<onnx::TypeProto> InferContrib(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_CONTRIB_H_
