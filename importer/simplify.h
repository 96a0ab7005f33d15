// importer/simplify.h: what happens to a model after BindDimensions() and BringToWorkingOpset():
// shapes are inferred, constants folded, passes run.
#ifndef ANEMONE_IMPORTER_SIMPLIFY_H_
#define ANEMONE_IMPORTER_SIMPLIFY_H_

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Afterwards the graph has no dead nodes and no dead values. With `options.simplify` false, nodes
// stay as they are and only shapes are inferred. Errors: those of inference and folding
// (importer/infer/fold.h); kInternal if a pass finds the graph damaged.
absl::Status Simplify(Model& model, const ImportOptions& options);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_SIMPLIFY_H_
