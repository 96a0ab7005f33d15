// importer/infer/fold.h: converts nodes to the working opset, infers types and shapes and folds
// constants in one pass over a model. All happen together because folded values determine shapes of
// later nodes, and a conversion may need these.
#ifndef ANEMONE_IMPORTER_INFER_FOLD_H_
#define ANEMONE_IMPORTER_INFER_FOLD_H_

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Processes the main graph and its bodies; the nodes of bodies must be of the working opset. It
// folds:
//
// - integer arithmetic on shapes, Shape and Size of known shapes, views of constants (Reshape and
//   others, without reading a byte), and fills (ConstantOfShape, Expand; they stay one value);
// - nodes that produce a weight from its compressed form (DequantizeLinear, Gather of a table; see
//   importer/write/compressed_nodes.h): the weight stays compressed, whatever its size;
// - an If whose condition is known: it is replaced by the branch;
// - a Loop or Scan that runs a known number of times and computes floats: it is replaced by its
//   iterations, if they are few nodes (importer/infer/unroll.h);
// - an operator of com.microsoft that can be expressed in plain nodes: it is replaced by them
//   (importer/contrib/contrib.h);
// - any other deterministic node whose inputs are all constant, by `evaluate` (may be null).
//   `evaluate` gets many nodes per call: a call is made when a shape depends on one, and at the
//   end.
//
// It does not fold random numbers, other nodes with bodies (a Loop may not end), results that are
// larger than both 16 MiB and their inputs, and nodes that `evaluate` refuses (with a warning).
// `gap_in_caches`: ImportOptions. Errors: those of inference (kInvalidArgument); a constant whose
// size overflows.
absl::Status InferAndFold(Model& model, const Evaluator& evaluate, bool gap_in_caches = false);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_FOLD_H_
