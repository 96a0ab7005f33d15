// importer/opset/opset.h: brings every node to one opset, kWorkingOpset, so that the rest of the
// house knows each operator in one form.
//
// - Older forms are lifted node by node (importer/opset/opset_lifts.h): Slice's attributes become
//   inputs, Softmax over flattened axes becomes Flatten, Softmax, Reshape, and so on.
// - Newer forms are relabelled where the working opset has the same form, with the types in use.
// - Else a newer operator that ONNX defines as a function is replaced by its body.
// - What is left keeps its version: the ONNX Runtime at hand decides. Whoever writes such nodes
//   back must see to the opset (Node::version).
//
// An operator that the working opset has is never expanded, also where ONNX has a function for it
// (Gelu, LayerNormalization, ...): engine units and ONNX Runtime know it as a whole.
#ifndef ANEMONE_IMPORTER_OPSET_OPSET_H_
#define ANEMONE_IMPORTER_OPSET_OPSET_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Main graph and bodies. New nodes have the origins of the node they stand for. Errors:
// kInvalidArgument (a form that cannot be lifted, such as a broadcast along an axis of a value of
// unknown rank; a node that breaks the rules of its own opset), kResourceExhausted (functions that
// expand beyond our limit).
absl::Status BringToWorkingOpset(Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPSET_OPSET_H_
