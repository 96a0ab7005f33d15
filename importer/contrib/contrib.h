// importer/contrib/contrib.h: the operators of domain com.microsoft that ONNX Runtime's optimizer
// and its model builders write, as bodies of plain ONNX nodes: Attention, SkipLayerNormalization,
// MatMulNBits and so on (docs/contrib_operators.md lists them).
//
// A body is built for the node at hand: for its attributes, the inputs and outputs that are there,
// types and shapes. It is spelled as exporters spell the same thing, so that whoever knows their
// patterns (kernels/) knows it too. A form that plain nodes do not mean exactly, or whose shapes
// are not known, stays as it is for ONNX Runtime's own kernel: nothing is guessed.
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

// Whether `node` is one of these operators (importer/operators/contrib.cc), in any form.
// SimplifiedLayerNormalization is one too, though ONNX Runtime has it in ONNX's domain.
bool IsContrib(const Node& node);

// Emits the body of the node. All its nodes stand for the call (design.md, Origins), but for those
// that only prepare integers (ContribBody::Aside). The reason if this form stays; nullopt: it is
// expanded.
absl::StatusOr<std::optional<std::string>> ExpandContrib(ContribBody& body);

// Types of the node's outputs, as far as they are known. For forms that stay.
std::vector<onnx::TypeProto> InferContrib(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_CONTRIB_H_
