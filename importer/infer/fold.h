// importer/infer/fold.h: one walk over a model that infers types and shapes and folds constants, so
// that each shape is known as far as it can be when the next node asks for it.
#ifndef ANEMONE_IMPORTER_INFER_FOLD_H_
#define ANEMONE_IMPORTER_INFER_FOLD_H_

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Main graph and bodies, whose nodes must be of the working opset. What is folded:
//
// - small integer arithmetic on shapes, Shape and Size of known shapes, views of constants
//   (Reshape, ...: no byte is read), fills (ConstantOfShape, Expand: they stay one value);
// - what makes a weight of its compressed form (DequantizeLinear, Gather of a table; see
//   importer/write/compressed_nodes.h): it stays compressed, whatever its size;
// - an If whose condition is known: the branch takes its place;
// - a Loop or Scan that runs a known number of times and computes floating numbers: its iterations
//   take its place, as long as they are few nodes (importer/infer/unroll.h);
// - an operator of com.microsoft, as far as it has a body of plain nodes
// (importer/contrib/contrib.h): the
//   body takes its place;
// - any other deterministic node whose inputs are all constant, by `evaluate` (may be null), which
//   is called once for many nodes: when a shape hangs on one of them, and at the end.
//
// Not folded: random numbers, other nodes with bodies (a Loop need not end), results larger than 16
// MiB and than what they are made of, nodes that `evaluate` refuses (with a warning). Errors: those
// of inference (kInvalidArgument); a constant too large to count.
absl::Status InferAndFold(Model& model, const Evaluator& evaluate);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_FOLD_H_
