// importer/opset/opset.h: converts every node to one opset, kWorkingOpset, so that the rest of
// Anemone handles each operator in one form only.
//
// - Older forms are converted node by node (importer/opset/opset_lifts.h): Slice's attributes
//   become inputs, Softmax over flattened axes becomes Flatten, Softmax, Reshape, and so on.
// - A newer form gets the working opset's version if that version has the same form and supports
//   the types in use.
// - Otherwise, a newer operator that ONNX defines as a function is replaced by the function's body.
// - All other nodes keep their version, and it depends on the version of ONNX Runtime whether they
//   run. Code that writes such nodes to a model must import that version (Node::version).
//
// An operator that the working opset has is never expanded, even if ONNX defines a function for it
// (Gelu, LayerNormalization, ...): the engine and ONNX Runtime have implementations of it.
#ifndef ANEMONE_IMPORTER_OPSET_OPSET_H_
#define ANEMONE_IMPORTER_OPSET_OPSET_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Converts the main graph and its bodies. New nodes have the origins of the node they replace.
// Errors: kInvalidArgument (a form that cannot be converted, such as a broadcast along an axis of a
// value of unknown rank; a node that breaks the rules of its opset), kResourceExhausted (functions
// that expand beyond our limit).
absl::Status BringToWorkingOpset(Model& model);

// Replaces the nodes of these operators by the functions that ONNX defines for them; nodes for
// which it defines none stay. The model is one that is imported; call Simplify() afterwards. Errors
// are as above.
absl::Status ExpandOperators(const std::set<std::string>& op_types, Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPSET_OPSET_H_
