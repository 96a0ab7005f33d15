// importer/simplify.h: the import steps after BindDimensions(): converts nodes to the working
// opset, infers shapes, folds constants and runs the passes.
#ifndef ANEMONE_IMPORTER_SIMPLIFY_H_
#define ANEMONE_IMPORTER_SIMPLIFY_H_

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Afterwards the graph has no dead nodes and no dead values. With `options.simplify` false, nodes
// are only converted, and shapes inferred. Errors: those of inference and folding
// (importer/infer/fold.h); kInternal if a pass finds the graph inconsistent.
absl::Status Simplify(Model& model, const ImportOptions& options);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_SIMPLIFY_H_
